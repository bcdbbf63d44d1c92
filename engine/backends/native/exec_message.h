// An execution plan as a message to init (child/wire.h).
#pragma once

#include <cstdint>

#include "backends/backend.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "plan/plan.h"

namespace palmshed::backends::native {

/// Sends it with its streams. A payload that does not fit into a message travels in a memfd.
Result<void> SendExec(BorrowedFd socket, std::uint32_t sequence, const plan::ExecPlan& plan,
                      const Stdio& stdio);

}  // namespace palmshed::backends::native
