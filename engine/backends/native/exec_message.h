// An execution plan as a message to init (child/wire.h).
#pragma once

#include <cstdint>

#include "backends/backend.h"
#include "backends/native/enforcer.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "plan/plan.h"

namespace palmshed::backends::native {

/// How init is to carry an execution.
struct ExecOrder {
  std::uint32_t sequence = 0;
  std::uint32_t armed = 0;  ///< The child that waits for it; 0: a new one.
  CarriedLimits carried{};
};

/// Sends it with its streams. A payload that does not fit into a message travels in a memfd.
Result<void> SendExec(BorrowedFd socket, const ExecOrder& order, const plan::ExecPlan& plan,
                      const Stdio& stdio);

}  // namespace palmshed::backends::native
