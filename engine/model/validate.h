// The rules that every request keeps, whichever door it came through: a parsed document or structs
// that a C++ program filled in. What a host or a backend can do is decided later, in plan/.
#pragma once

#include <string_view>

#include "palmshed/error.h"
#include "palmshed/json.h"
#include "palmshed/options.h"

namespace palmshed::model {

/// The controls whose absence a caller may accept in `degraded`.
inline constexpr std::string_view kDegradable[] = {
    "memory", "cpuQuota", "pids", "cpuTimeLimit", "diskQuota", "proc", "groups", "hostLoopback"};

inline constexpr double kMinCores = 0.1;

/// INVALID_OPTIONS naming the first field that is wrong.
Result<void> Validate(const SandboxOptions& options);
Result<void> Validate(const ExecRequest& request);

}  // namespace palmshed::model
