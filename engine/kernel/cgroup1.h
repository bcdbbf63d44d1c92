// cgroup v1: a hierarchy for each controller, or for a few together. A group of ours is a directory
// of the same name in each hierarchy that has a controller we want, below this process's own group
// there. It is one in the hierarchy of cgroup v2 too, where that is mounted beside: without
// controllers, but a whole group can be killed by it (cgroup.kill, Linux 5.14).
#pragma once

#include <memory>

#include "kernel/cgroup.h"
#include "kernel/cgroup_place.h"

namespace palmshed::kernel {

/// Null where nothing can be enforced; `missing` says why, also of what part is missing.
std::unique_ptr<CgroupTree> FindCgroup1(const CgroupHost& host, NoCgroups& missing);

}  // namespace palmshed::kernel
