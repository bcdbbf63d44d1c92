// Limits by control groups: all of them where the host has the controllers. A group per sandbox,
// made when its first limit is asked for, and a leaf per execution (kernel/cgroup.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/native/enforcer.h"
#include "kernel/cgroup.h"
#include "palmshed/error.h"

namespace palmshed::backends::native {

struct GroupSourceParts {
  kernel::CgroupTree* tree;  ///< Outlives the source.
  std::string name;          ///< Of the sandbox's group: its id.
  /// How many processors a program here can use at once.
  unsigned processors;
  /// Whether a child can bear more than one program in such a sandbox (child/bearer.h).
  bool bearers = true;
  /// Writes down the directories that the group will have, before it is made: should the engine
  /// die, somebody has to remove them.
  std::function<Result<void>(const std::vector<std::string>&)> record;
};

std::unique_ptr<EnforcerSource> MakeGroupSource(GroupSourceParts parts);

}  // namespace palmshed::backends::native
