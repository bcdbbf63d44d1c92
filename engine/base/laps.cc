#include "base/laps.h"

#include <chrono>
#include <string_view>
#include <vector>

#include "palmshed/result.h"

namespace palmshed {

Laps::Laps(bool wanted) : wanted_(wanted) {
  if (wanted_) begin_ = Clock::now();
}

void Laps::End(std::string_view step) {
  if (wanted_) EndAt(step, Clock::now());
}

void Laps::EndAt(std::string_view step, Clock::time_point at) {
  if (wanted_) ends_.emplace_back(step, at);
}

void Laps::Append(const Laps& more) {
  if (wanted_) ends_.insert(ends_.end(), more.ends_.begin(), more.ends_.end());
}

std::vector<StepTime> Laps::Steps() const {
  std::vector<StepTime> steps;
  steps.reserve(ends_.size());
  std::chrono::microseconds before{};
  for (const auto& [step, end] : ends_) {
    const auto until = std::chrono::floor<std::chrono::microseconds>(end - begin_);
    steps.push_back({.step = step, .duration = until - before});
    before = until;
  }
  return steps;
}

}  // namespace palmshed
