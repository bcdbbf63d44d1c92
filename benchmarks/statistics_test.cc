#include "benchmarks/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace palmshed::benchmarks {
namespace {

std::vector<Micros> Numbers(int from, int to) {
  std::vector<Micros> samples;
  for (int i = from; i <= to; ++i) samples.emplace_back(i);  // NOLINT: a handful
  return samples;
}

TEST(Quantile, OfUnsortedSamples) {
  auto samples = Numbers(0, 100);
  std::ranges::reverse(samples);
  EXPECT_EQ(Median(samples), Micros(50));
  EXPECT_EQ(Quantile(samples, 0.95), Micros(95));
  EXPECT_EQ(Quantile(samples, 1), Micros(100));
}

TEST(Quantile, OfOneSample) {
  const std::vector<Micros> one{Micros(7)};
  EXPECT_EQ(Median(one), Micros(7));
  EXPECT_EQ(Quantile(one, 0.95), Micros(7));
}

TEST(MedianRatio, IsExactWhereNothingVaries) {
  Random random(1);
  const std::vector<Micros> twos(20, Micros(2));
  const std::vector<Micros> fours(20, Micros(4));
  const Ratio ratio = MedianRatio(fours, twos, random);
  EXPECT_DOUBLE_EQ(ratio.value, 2);
  EXPECT_DOUBLE_EQ(ratio.low, 2);
  EXPECT_DOUBLE_EQ(ratio.high, 2);
}

TEST(MedianRatio, WidensWithNoise) {
  Random random(1);
  std::normal_distribution<double> noise(100, 20);
  std::vector<Micros> noisy;
  noisy.reserve(50);
  for (int i = 0; i < 50; ++i) noisy.emplace_back(noise(random));
  const std::vector<Micros> steady(50, Micros(100));
  const Ratio ratio = MedianRatio(noisy, steady, random);
  EXPECT_LT(ratio.low, ratio.value);
  EXPECT_GT(ratio.high, ratio.value);
  EXPECT_GT(ratio.low, 0.8);
  EXPECT_LT(ratio.high, 1.2);
}

// A round in which the whole machine was slow says nothing about the ratio.
TEST(MedianRatio, IgnoresWhatSlowedBothSidesOfARound) {
  Random random(1);
  std::uniform_real_distribution<double> load(1, 10);
  std::vector<Micros> samples;
  std::vector<Micros> base;
  for (int i = 0; i < 50; ++i) {
    const double factor = load(random);
    samples.emplace_back(150 * factor);
    base.emplace_back(100 * factor);
  }
  const Ratio ratio = MedianRatio(samples, base, random);
  EXPECT_NEAR(ratio.low, 1.5, 1e-9);
  EXPECT_NEAR(ratio.high, 1.5, 1e-9);
}

}  // namespace
}  // namespace palmshed::benchmarks
