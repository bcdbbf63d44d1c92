// What a step hands back: nothing wrong, or where and why it failed.
#pragma once

#include <cstdint>

#include "child/wire.h"

namespace palmshed::child {

struct [[nodiscard]] Failure {
  Step step = Step::kNone;
  std::int32_t sys_errno = 0;
  std::uint32_t detail = 0;

  bool failed() const { return step != Step::kNone; }
};

inline constexpr Failure kSuccess{};

/// `result` as of a raw system call.
inline Failure FailureIf(long result, Step step, std::uint32_t detail = 0) {
  if (result >= 0) return kSuccess;
  return {step, static_cast<std::int32_t>(-result), detail};
}

}  // namespace palmshed::child
