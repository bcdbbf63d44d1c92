// Looking at everything in a tree that a program may change meanwhile.
#pragma once

#include <sys/stat.h>

#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::workspace {

/// What is done on a walk. It may delete what it is shown.
class TreeVisitor {
 public:
  virtual ~TreeVisitor() = default;
  /// A name in `directory`, and what it stands for: a link itself. A directory is shown before what
  /// is in it. False ends the walk.
  virtual bool See(BorrowedFd directory, const char* name, const struct statx& st) = 0;
  /// What is shown next, up to its Leave, is in the directory `name` of the one shown so far.
  virtual void Enter(const char* /*name*/) {}
  /// Everything in the directory `name` of `parent` has been shown.
  virtual void Leave(BorrowedFd, const char* /*name*/, const struct statx&) {}
};

/// Shows everything below `root`; true when nothing ended the walk. Links are never followed, and
/// nothing outside is ever opened: directories are opened by their name in the one above, and a way
/// back up is taken only to the directory that it came down from. EAGAIN: the tree was changed in
/// such a way that the walk could not go on. What vanishes meanwhile is no failure. Trees of any
/// depth take a bounded number of descriptors. Directories whose owner took away the permissions
/// are opened all the same, and keep them.
Result<bool> WalkTree(BorrowedFd root, TreeVisitor& visitor);

}  // namespace palmshed::workspace
