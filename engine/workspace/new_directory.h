// A directory that appears complete or not at all.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "workspace/remove_tree.h"
#include "workspace/resolve.h"

namespace palmshed::workspace {

/// Makes a directory under a temporary name, closed to others, lets `fill` fill it (and give it
/// the owner and mode it is to have), and gives it its name.
template <class Fill>
Result<void> MakeWhole(const Leaf& leaf, Fill fill) {
  constexpr mode_t kUnfinishedMode = 0700;
  PALMSHED_TRY(const std::string temporary, TemporaryName());
  PALMSHED_TRY_VOID(sys::MkdirAt(leaf.parent.get(), temporary, kUnfinishedMode));
  auto filled = [&]() -> Result<void> {
    PALMSHED_TRY(const UniqueFd fd,
                 sys::OpenAt(leaf.parent.get(), temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    PALMSHED_TRY_VOID(fill(fd.get()));
    return sys::RenameAt(leaf.parent.get(), temporary, leaf.parent.get(), leaf.name);
  }();
  // The failure to report is the first one.
  if (!filled) (void)RemoveTree(leaf.parent.get(), temporary);
  return filled;
}

}  // namespace palmshed::workspace
