// FindCgroupTree on a host that is made up. For tests, and kernel/cgroup.cc.
#pragma once

#include <memory>

#include "kernel/cgroup.h"
#include "kernel/cgroup_place.h"

namespace palmshed::kernel {

/// Null where no limit can be enforced by groups.
std::unique_ptr<CgroupTree> FindCgroupTreeOn(const CgroupHost& host, NoCgroups& missing);

}  // namespace palmshed::kernel
