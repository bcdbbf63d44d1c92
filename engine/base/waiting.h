// Time spans that callers may make as long as they like.
#pragma once

#include <algorithm>
#include <chrono>

#include "palmshed/units.h"

namespace palmshed {

/// `span`, but at most a hundred years: added to a clock in nanoseconds, 2^53 ms would overflow.
constexpr Millis Bounded(Millis span) {
  constexpr Millis kCentury = std::chrono::hours(24 * 365 * 100);
  return std::min(span, kCentury);
}

}  // namespace palmshed
