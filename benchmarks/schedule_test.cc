#include "benchmarks/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/statistics.h"

namespace palmshed::benchmarks {
namespace {

using std::chrono::milliseconds;

Variant Noting(const std::string& name, std::string& log) {
  return {.name = name,
          .floor = name,
          .prepare = [&log] { log += "<"; },
          .run = [&log, name] { log += name; },
          .finish = [&log] { log += ">"; }};
}

TEST(Measure, RunsEachVariantOnceARoundBetweenItsHooks) {
  std::string log;
  const std::vector<Variant> variants{Noting("a", log), Noting("b", log)};
  Random random(1);
  const auto series = Measure(variants, milliseconds(0), 3, random);
  ASSERT_EQ(series.size(), 2U);
  EXPECT_EQ(series[0].samples.size(), 3U);
  EXPECT_EQ(series[1].samples.size(), 3U);
  EXPECT_THAT(log, testing::MatchesRegex("<a><b>((<a><b>)|(<b><a>)){3}"));
}

TEST(Measure, DrawsTheOrderAnewInEachRound) {
  std::string log;
  std::vector<Variant> variants;
  for (const char* name : {"a", "b", "c"}) {
    variants.push_back({.name = name, .floor = "a", .run = [&log, name] { log += name; }});
  }
  Random random(1);
  (void)Measure(variants, milliseconds(0), 60, random);
  std::set<std::string> orders;
  for (std::size_t at = 3; at < log.size(); at += 3) orders.insert(log.substr(at, 3));
  EXPECT_EQ(orders.size(), 6U) << log;
}

TEST(Measure, TimesTheRunAlone) {
  const milliseconds slow(20);
  const std::vector<Variant> variants{{.name = "a",
                                       .floor = "a",
                                       .prepare = [&] { std::this_thread::sleep_for(slow); },
                                       .run = [] {},
                                       .finish = [&] { std::this_thread::sleep_for(slow); }}};
  Random random(1);
  const auto series = Measure(variants, slow, 3, random);
  EXPECT_LT(Median(series[0].samples), slow);
}

TEST(Measure, MakesAFailedAttemptAgainAndKeepsOneSampleARound) {
  int attempts = 0;
  const auto every_third_fails = [&] { return ++attempts % 3 == 0 ? "busy" : ""; };
  const std::vector<Variant> variants{{.name = "a", .floor = "a", .attempt = every_third_fails}};
  Random random(1);
  const auto series = Measure(variants, milliseconds(0), 6, random);
  EXPECT_EQ(series[0].samples.size(), 6U);
  EXPECT_EQ(series[0].failures, 3);
  EXPECT_EQ(series[0].failure, "busy");
}

TEST(Measure, GivesUpWhatKeepsFailing) {
  int attempts = 0;
  const auto works_twice = [&] { return ++attempts > 2 ? "gone" : ""; };
  std::string log;
  const std::vector<Variant> variants{{.name = "a", .floor = "b", .attempt = works_twice},
                                      {.name = "b", .floor = "b", .run = [&] { log += "b"; }}};
  Random random(1);
  const auto series = Measure(variants, milliseconds(0), 5, random);
  EXPECT_TRUE(series[0].samples.empty());
  EXPECT_EQ(series[0].failures, 3);
  EXPECT_EQ(attempts, 5);
  EXPECT_EQ(log, "bbbbbb");
}

}  // namespace
}  // namespace palmshed::benchmarks
