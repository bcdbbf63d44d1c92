// Clears away what sandboxes left whose engine died before it could.
#pragma once

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::backends::native {

/// What one pass of a collector did.
struct Collection {
  struct Failure {
    std::string id;
    Error why;
  };
  std::vector<std::string> removed;  ///< Ids, each sandbox once; not of lock files that were alone.
  std::vector<Failure> failures;     ///< One for each that could not be removed.
};

/// Deletes every sandbox in the directory of workspaces whose lock nobody holds, and directories
/// that have none, and the control groups that their engines made to look at
/// (kernel::RemoveDeadProbes). A live sandbox, or one that is being made, is never touched; names
/// that are not ours neither. Any number of collectors may run at once. Blocks.
Result<Collection> CollectDead(BorrowedFd root);

}  // namespace palmshed::backends::native
