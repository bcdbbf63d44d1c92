// The processes below another one.
#pragma once

#include <sys/types.h>

#include <vector>

namespace palmshed::benchmarks {

/// Descendants of `root`, in this pid namespace, at the moment of the call.
std::vector<pid_t> Descendants(pid_t root);

}  // namespace palmshed::benchmarks
