// Deleting what a program left behind, however it left it.
#pragma once

#include <string>

#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::workspace {

/// Deletes `name` in `parent` and everything below it. Links are deleted, never followed; what is
/// gone already is no failure. Directories whose owner took away the permissions are given them
/// back. Trees of any depth take a bounded stack and a bounded number of descriptors. Goes on after
/// a failure and reports the first one; a tree that something keeps filling ends as a failure.
Result<void> RemoveTree(BorrowedFd parent, const std::string& name);

}  // namespace palmshed::workspace
