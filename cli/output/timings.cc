#include "cli/output/timings.h"

#include <fmt/core.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "palmshed/result.h"

namespace palmshed::cli {
namespace {

std::string FormatLap(std::string_view step, Timings::Clock::duration duration) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(duration);
  return fmt::format("timing {:<20} {:>9} us", step, micros.count());
}

}  // namespace

void Timings::Lap(std::string_view step, const std::vector<StepTime>& parts,
                  Clock::time_point now) {
  Clock::duration rest = now - last_;
  for (const StepTime& part : parts) {
    laps_.emplace_back(fmt::format("{}.{}", step, part.step), part.duration);
    rest -= part.duration;
  }
  laps_.emplace_back(parts.empty() ? std::string(step) : fmt::format("{}.call", step), rest);
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
