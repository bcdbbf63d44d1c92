// Deleting what a program left behind, however it left it.
#pragma once

#include <chrono>
#include <string>

#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::workspace {

/// Deletes `name` in `parent` and everything below it. Links are deleted, never followed; what is
/// gone already is no failure. Directories whose owner took away the permissions are given them
/// back. Trees of any depth take a bounded stack and a bounded number of descriptors. Goes on after
/// a failure and reports the first one. A program that fills the tree as fast as it is emptied is
/// given up on after `limit`, with ENOTEMPTY.
Result<void> RemoveTree(BorrowedFd parent, const std::string& name,
                        std::chrono::milliseconds limit = std::chrono::minutes(10));

}  // namespace palmshed::workspace
