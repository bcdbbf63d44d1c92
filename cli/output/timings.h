// `run --timings`: how long each step took.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palmshed/result.h"

namespace palmshed::cli {

/// A stopwatch with laps.
class Timings {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Timings(Clock::time_point start = Clock::now()) : start_(start), last_(start) {}

  /// Ends a step: it took the time since the end of the one before. `parts` are what the engine
  /// knows of it; the rest is what it took to ask the engine, and to hear its answer.
  void Lap(std::string_view step, const std::vector<StepTime>& parts = {},
           Clock::time_point now = Clock::now());
  /// One line for each step, then the total, without line ends.
  std::vector<std::string> Lines() const;

 private:
  Clock::time_point start_;
  Clock::time_point last_;
  std::vector<std::pair<std::string, Clock::duration>> laps_{};
};

}  // namespace palmshed::cli
