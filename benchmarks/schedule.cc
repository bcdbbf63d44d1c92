// Theory of operation. Google Benchmark runs one thing many times, then the next. On a machine that
// is shared, or whose clock changes, the hours differ more than the things do; and a loop without
// pauses keeps caches, scheduler and RCU warm in a way that no user of a sandbox sees. So here all
// variants take turns within one run, the order is random in each round (a fixed one gives some of
// them a warmer cache than others), and a gap of idleness can precede each turn. Ratios between
// variants of one run are what counts; absolute times describe a machine and an hour.
#include "benchmarks/schedule.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/die.h"
#include "benchmarks/statistics.h"

namespace palmshed::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTries = 3;

std::string Run(const Variant& variant) {
  if (variant.attempt) return variant.attempt();
  variant.run();
  return {};
}

/// Nothing when it failed.
std::optional<Micros> RunOnce(const Variant& variant, std::chrono::milliseconds gap,
                              Series& series) {
  if (variant.prepare) variant.prepare();
  if (gap.count() > 0) std::this_thread::sleep_for(gap);
  const auto start = Clock::now();
  std::string why = Run(variant);
  const Micros taken = Clock::now() - start;
  if (variant.finish) variant.finish();
  if (why.empty()) return taken;
  ++series.failures;
  series.failure = std::move(why);
  return std::nullopt;
}

/// False when it was given up.
bool TakeTurn(const Variant& variant, std::chrono::milliseconds gap, Series& series) {
  for (int left = kTries; left > 0; --left) {
    const auto taken = RunOnce(variant, gap, series);
    if (!taken) continue;
    series.samples.push_back(*taken);
    return true;
  }
  return false;
}

}  // namespace

std::vector<Series> Measure(std::span<const Variant> variants, std::chrono::milliseconds gap,
                            int rounds, Random& random) {
  std::vector<Series> series;
  for (const Variant& variant : variants) {
    series.push_back({.name = variant.name, .floor = variant.floor});
    (void)RunOnce(variant, std::chrono::milliseconds(0), series.back());
  }
  std::vector<std::size_t> order;
  order.reserve(variants.size());
  for (std::size_t i = 0; i < variants.size(); ++i) order.push_back(i);
  for (int round = 0; round < rounds; ++round) {
    std::ranges::shuffle(order, random);
    std::erase_if(order, [&](std::size_t i) {
      const bool kept = TakeTurn(variants[i], gap, series[i]);
      if (!kept) series[i].samples.clear();
      return !kept;
    });
  }
  return series;
}

const Series& Find(std::span<const Series> series, const std::string& name) {
  const auto found = std::ranges::find(series, name, &Series::name);
  if (found == series.end()) Die("there is no variant named " + name);
  return *found;
}

}  // namespace palmshed::benchmarks
