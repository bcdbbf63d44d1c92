#include "backends/native/sampled_pace.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace palmshed::backends::native {
namespace {

using std::chrono::nanoseconds;

// Pages are handed out no faster than they can be cleared: about this many bytes in a nanosecond.
constexpr std::uint64_t kFastest = 8;
constexpr int kShare = 20;     // Looking takes at most one part of so many,
constexpr int kShareNear = 4;  // near the limit one of so many.
constexpr nanoseconds kDearest = std::chrono::milliseconds(500);
constexpr nanoseconds kOvershoot = std::chrono::milliseconds(20);  // Of CPU time.
constexpr nanoseconds kFinest = std::chrono::microseconds(200);

}  // namespace

nanoseconds MemoryPace::First() const {
  const nanoseconds earliest(static_cast<std::int64_t>(limit_ / kFastest));
  return std::clamp(earliest, kShortest, kBusy);
}

nanoseconds MemoryPace::Next(std::uint64_t used, bool busy, nanoseconds elapsed, nanoseconds cost) {
  const std::uint64_t grown = used > before_ ? used - before_ : 0;
  const std::uint64_t left = limit_ > used ? limit_ - used : 0;
  before_ = used;
  const bool near = used / 3 > limit_ / 4;
  nanoseconds next = kBusy;
  if (!busy && grown == 0) {
    idle_ = std::min(idle_ * 2, kIdle);
    next = idle_;
  } else {
    idle_ = kBusy;
    if (near) next = kNear;
    if (grown > 0) {
      const double until = static_cast<double>(left) / static_cast<double>(grown) *
                           static_cast<double>(elapsed.count());
      const double wanted = std::min(until / 4, static_cast<double>(next.count()));
      next = std::max(kShortest, nanoseconds(static_cast<std::int64_t>(wanted)));
    }
  }
  return std::max(next, std::min(cost * (near ? kShareNear : kShare), kDearest));
}

nanoseconds NextCpuLook(nanoseconds budget, nanoseconds used, unsigned processors,
                        nanoseconds latest) {
  const nanoseconds soonest = std::max(kFinest, kOvershoot / std::max(processors, 1U));
  const nanoseconds left = used < budget ? budget - used : nanoseconds(0);
  return std::min(std::max(left / std::max(processors, 1U), soonest), latest);
}

}  // namespace palmshed::backends::native
