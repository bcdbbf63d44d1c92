#include "benchmarks/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

namespace palmshed::benchmarks {
namespace {

constexpr int kResamples = 1000;

/// Leaves `samples` partly sorted.
Micros QuantileInPlace(std::span<Micros> samples, double share) {
  const auto last = static_cast<double>(samples.size() - 1);
  const auto place = samples.begin() + std::lround(share * last);
  std::ranges::nth_element(samples, place);
  return *place;
}

}  // namespace

Micros Quantile(std::span<const Micros> samples, double share) {
  std::vector<Micros> copy(samples.begin(), samples.end());
  return QuantileInPlace(copy, share);
}

Micros Median(std::span<const Micros> samples) { return Quantile(samples, 0.5); }

Ratio MedianRatio(std::span<const Micros> samples, std::span<const Micros> base, Random& random) {
  const std::size_t rounds = std::min(samples.size(), base.size());
  std::uniform_int_distribution<std::size_t> pick(0, rounds - 1);
  std::vector<Micros> drawn(rounds);
  std::vector<Micros> drawn_base(rounds);
  std::vector<double> ratios(kResamples);
  for (double& ratio : ratios) {
    for (std::size_t i = 0; i < rounds; ++i) {
      const std::size_t round = pick(random);
      drawn[i] = samples[round];
      drawn_base[i] = base[round];
    }
    ratio = QuantileInPlace(drawn, 0.5) / QuantileInPlace(drawn_base, 0.5);
  }
  std::ranges::sort(ratios);
  return {.value = Median(samples) / Median(base),
          .low = ratios[kResamples * 25 / 1000],
          .high = ratios[kResamples * 975 / 1000]};
}

}  // namespace palmshed::benchmarks
