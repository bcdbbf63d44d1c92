// cgroup v2: one hierarchy, in which a group hands controllers down to the groups below it, and may
// then have no processes itself (the root excepted).
//
// So this process's own group is rarely of use as it is. Upwards from there, the first place serves
// that may be written, hands down memory and pids (or can be made to), and is not held back by
// processes. Where our own group was delegated to us, and nobody is in it but this process and what
// it has started, those first move down, to `engine` in it.
#pragma once

#include <memory>
#include <string>

#include "kernel/cgroup.h"
#include "kernel/cgroup_place.h"

namespace palmshed::kernel {

/// Null where no group can be made; `missing` says why, also of what part is missing.
std::unique_ptr<CgroupTree> FindCgroup2(const CgroupHost& host, NoCgroups& missing);

}  // namespace palmshed::kernel
