// Runs things by turns and times them.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/statistics.h"

namespace palmshed::benchmarks {

/// One thing to time. Hooks that are not needed stay empty.
struct Variant {
  std::string name;                 ///< Short; the same in every table and JSON file.
  std::string floor;                ///< Name of the variant that does the same without a sandbox.
  std::function<void()> prepare{};  ///< Before the idle gap; not timed.
  std::function<void()> run{};      ///< Timed.
  /// In place of `run`, of what is not ours and may fail: why it did; empty when it did not.
  std::function<std::string()> attempt{};
  std::function<void()> finish{};  ///< Not timed.
};

struct Series {
  std::string name;
  std::string floor;
  std::vector<Micros> samples{};  ///< One per round, in order; none of what was given up.
  int failures = 0;               ///< Attempts that failed, each of which was made again.
  std::string failure{};          ///< Why the last of them did.
};

/// Runs every variant once a round, in an order drawn anew for each round, after `gap` of idleness.
/// One round before the first is not counted: it fills caches. What fails three times in a row is
/// given up.
std::vector<Series> Measure(std::span<const Variant> variants, std::chrono::milliseconds gap,
                            int rounds, Random& random);

/// Precondition: `name` is one of `series`.
const Series& Find(std::span<const Series> series, const std::string& name);

}  // namespace palmshed::benchmarks
