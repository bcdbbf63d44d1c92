#include "backends/native/helper_steps.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "base/laps.h"
#include "child/wire.h"

namespace palmshed::backends::native {
namespace {

struct Stamp {
  std::string_view step;
  std::uint64_t ns;  ///< Of its end; 0: not known.
};

/// A step whose end is not known is one with the next; the last ones without an end did not take
/// place.
void AddSteps(std::span<const Stamp> stamps, Laps& laps) {
  std::string step;
  for (const Stamp& stamp : stamps) {
    if (!step.empty()) step += '+';
    step += stamp.step;
    if (stamp.ns == 0) continue;
    laps.EndAt(step, Laps::Clock::time_point(std::chrono::nanoseconds(stamp.ns)));
    step.clear();
  }
}

}  // namespace

void AddInitSteps(const child::InitReply& ready, Laps& laps) {
  using namespace child;
  const auto* const confined = std::max_element(std::begin(ready.stamps) + kStampConfigured,
                                                std::begin(ready.stamps) + kStampServing);
  const Stamp stamps[] = {{"init", ready.stamps[kStampConfigured]},
                          {"view", ready.stamps[kStampViewMade]},
                          {"confine", *confined},
                          {"serve", ready.stamps[kStampServing]}};
  AddSteps(stamps, laps);
  laps.End("ready");
}

void AddExecSteps(const child::InitReply& ended, Laps& laps) {
  const Stamp stamps[] = {{"send", ended.stamps[child::kStampReceived]},
                          {"prepare", ended.stamps[child::kStampPrepared]},
                          {"exec", ended.stamps[child::kStampExecuted]},
                          {"run", ended.stamps[child::kStampReaped]},
                          {"descendants", ended.stamps[child::kStampCleared]}};
  AddSteps(stamps, laps);
  laps.End(ended.stamps[child::kStampReceived] != 0 ? "report" : "send+report");
}

}  // namespace palmshed::backends::native
