// A sandbox plan as the first message to its init (child/wire.h).
#pragma once

#include <cstddef>
#include <vector>

#include "backends/native/view.h"
#include "plan/plan.h"

namespace palmshed::backends::native {

/// The InitConfig with its filter and rules. `landlock_abi` decides about signal scopes.
std::vector<std::byte> EncodeInit(const plan::SandboxPlan& plan, const View& view,
                                  int landlock_abi);

}  // namespace palmshed::backends::native
