// Whether groups can be made, seen by making one. For kernel/cgroup*.cc alone.
#pragma once

#include <functional>
#include <string>

#include "kernel/cgroup_place.h"
#include "palmshed/error.h"

namespace palmshed::kernel {

/// Removes the groups in `directory` that were made to be looked at and whose maker was killed.
/// Best effort: they are in the way of nobody.
void RemoveDeadProbes(const CgroupHost& host, const std::string& directory);

/// Makes a group in `directory`, has `look` look at it, and removes it again. Whoever makes one
/// holds a lock on it (flock(2)) meanwhile, so that one whose maker was killed is known: those are
/// removed beforehand.
Result<void> LookAtNewGroup(const CgroupHost& host, const std::string& directory,
                            const std::function<void(const std::string& group)>& look);

}  // namespace palmshed::kernel
