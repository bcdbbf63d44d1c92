// A sandbox as those see it who enforce its limits.
#pragma once

#include <sys/types.h>

#include <functional>

#include "backends/native/state.h"
#include "base/unique_fd.h"
#include "child/wire.h"
#include "palmshed/error.h"

namespace palmshed::backends::native {

/// Everything in it outlives what enforces the limits.
struct LimitedSandbox {
  const SandboxHome* home;
  pid_t init = 0;  ///< Its number on the host.
  std::function<Result<UniqueFd>(child::Inside)> open_inside{};
};

}  // namespace palmshed::backends::native
