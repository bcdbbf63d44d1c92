// When to look again.
#pragma once

#include <chrono>
#include <cstdint>

namespace palmshed::backends::native {

/// For memory: soon while it grows or is near the limit, seldom while nothing happens, and never so
/// often that looking takes a large part of a processor. Durations are in nanoseconds.
class MemoryPace {
 public:
  using Span = std::chrono::nanoseconds;
  static constexpr Span kShortest = std::chrono::milliseconds(1);
  static constexpr Span kNear = std::chrono::milliseconds(2);    ///< Near the limit, and busy.
  static constexpr Span kBusy = std::chrono::milliseconds(10);   ///< While it runs at all.
  static constexpr Span kIdle = std::chrono::milliseconds(100);  ///< While it does not.

  explicit MemoryPace(std::uint64_t limit) : limit_(limit) {}
  /// Before the first look: not before the limit can have been reached.
  Span First() const;
  /// After a look that took `cost`, `elapsed` after the one before.
  Span Next(std::uint64_t used, bool busy, Span elapsed, Span cost);

 private:
  std::uint64_t limit_;
  std::uint64_t before_ = 0;
  Span idle_ = kBusy;
};

/// For CPU time: when the rest of the budget could first be used up, with `processors` at work; no
/// later than `latest`.
std::chrono::nanoseconds NextCpuLook(std::chrono::nanoseconds budget, std::chrono::nanoseconds used,
                                     unsigned processors, std::chrono::nanoseconds latest);

}  // namespace palmshed::backends::native
