// Room for groups in a group of cgroup v2, which cannot hand down controllers while it has
// processes itself (cgroups(7), "no internal processes"). For kernel/cgroup2.cc alone.
#pragma once

#include <sys/types.h>

#include <string>

#include "palmshed/error.h"

namespace palmshed::kernel {

/// Moves `self` and every process that descends from it from the group `from` to the group `to`.
/// EBUSY when others are in `from`, in which case nothing is moved, or when it does not get empty
/// because processes are started faster than they are moved. Blocks.
Result<void> MoveDescendants(const std::string& from, const std::string& to, pid_t self);

}  // namespace palmshed::kernel
