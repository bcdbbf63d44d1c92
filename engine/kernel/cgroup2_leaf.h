// The group of one execution in cgroup v2. For kernel/cgroup2*.cc alone.
#pragma once

#include <memory>
#include <string>

#include "kernel/cgroup.h"
#include "palmshed/error.h"

namespace palmshed::kernel {

/// A leaf whose directory has been made; it removes it.
Result<std::unique_ptr<CgroupLeaf>> MakeLeaf2(std::string directory,
                                              const CgroupControllers& controllers);

}  // namespace palmshed::kernel
