// What is said about a series of timings, and how sure it is.
#pragma once

#include <chrono>
#include <random>
#include <span>
#include <vector>

namespace palmshed::benchmarks {

/// A duration as it is printed; samples are kept in it so that medians need no rounding.
using Micros = std::chrono::duration<double, std::micro>;
using Random = std::mt19937_64;

/// The sample below which `share` (0 to 1) of the sorted samples lie. Precondition: not empty.
Micros Quantile(std::span<const Micros> samples, double share);
Micros Median(std::span<const Micros> samples);

/// One median divided by another, with the interval that holds it in 95 of 100 repetitions.
struct Ratio {
  double value = 0;
  double low = 0;
  double high = 0;
};

/// Precondition: both hold one sample of each round, in order. Rounds are drawn anew (bootstrap),
/// samples of one round together: what slowed a whole round down is then in both medians.
Ratio MedianRatio(std::span<const Micros> samples, std::span<const Micros> base, Random& random);

}  // namespace palmshed::benchmarks
