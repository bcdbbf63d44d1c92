#include "cli/output/timings.h"

#include <fmt/core.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace palmshed::cli {
namespace {

std::string FormatLap(std::string_view step, Timings::Clock::duration duration) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(duration);
  return fmt::format("timing {:<8} {:>9} us", step, micros.count());
}

}  // namespace

void Timings::Lap(std::string_view step, Clock::time_point now) {
  laps_.emplace_back(step, now - last_);
  last_ = now;
}

std::vector<std::string> Timings::Lines() const {
  std::vector<std::string> lines;
  lines.reserve(laps_.size() + 1);
  for (const auto& [step, duration] : laps_) lines.push_back(FormatLap(step, duration));
  lines.push_back(FormatLap("total", last_ - start_));
  return lines;
}

}  // namespace palmshed::cli
