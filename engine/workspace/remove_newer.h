// Taking back what was created since a moment.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "workspace/disk_usage.h"

namespace palmshed::workspace {

/// Which files are new, on the clock of their file system, whose ticks may be milliseconds.
struct Newness {
  FileTime since{};  ///< Born then or later.
  /// But these are old, and born in that very tick; nullopt: nobody knows which are.
  std::optional<std::vector<FileId>> but{std::in_place};
};

/// Deletes whatever is new below `roots`; old files keep their directories. True when all of it is
/// gone; what nobody knows is not deleted. Links are deleted, never followed.
/// Precondition: nobody else changes the trees.
bool RemoveNewer(std::span<const BorrowedFd> roots, const Newness& newness);

}  // namespace palmshed::workspace
