// The end of a measurement that cannot be what it says it is.
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "palmshed/error.h"

namespace palmshed::benchmarks {

/// Prints `why` and exits with 1. A benchmark never goes on after a failure: a run that failed is
/// fast, and would be counted.
[[noreturn]] void Die(const std::string& why);
/// As above, for a system call that has set errno.
[[noreturn]] void DieErrno(const std::string& call);

/// The value, or the end.
template <class T>
T Must(Result<T> result) {
  if (!result) Die(result.error().op + ": " + result.error().message);
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace palmshed::benchmarks
