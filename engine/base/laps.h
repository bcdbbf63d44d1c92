// Where the time goes: steps that follow one another without a gap.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palmshed/result.h"

namespace palmshed {

/// A stopwatch with laps. Not for two threads at the same time; one may go on where another ended.
class Laps {
 public:
  using Clock = std::chrono::steady_clock;  ///< CLOCK_MONOTONIC, that of the helper's stamps.

  /// Begins now. `wanted` false: notes nothing, and does not look at the clock.
  explicit Laps(bool wanted = true);
  Laps(bool wanted, Clock::time_point begin) : wanted_(wanted), begin_(begin) {}

  /// A step that began when the one before it ended is over.
  void End(std::string_view step);
  void EndAt(std::string_view step, Clock::time_point at);
  /// The steps of somebody who went on where this ended.
  void Append(const Laps& more);
  /// In whole microseconds, which add up to the whole.
  std::vector<StepTime> Steps() const;

 private:
  bool wanted_;
  Clock::time_point begin_{};
  std::vector<std::pair<std::string, Clock::time_point>> ends_{};
};

}  // namespace palmshed
