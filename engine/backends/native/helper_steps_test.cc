#include "backends/native/helper_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/laps.h"
#include "child/wire.h"
#include "palmshed/result.h"

namespace palmshed::backends::native {
namespace {

using ::testing::ElementsAre;

/// The stamps are small: they are of a boot that began just now.
Laps FromZero() { return Laps(true, Laps::Clock::time_point()); }

std::vector<std::string> NamesIn(const Laps& laps) {
  std::vector<std::string> names;
  for (const StepTime& step : laps.Steps()) names.push_back(step.step);
  return names;
}

child::InitReply With(std::initializer_list<std::uint64_t> stamps) {
  child::InitReply reply{};
  std::ranges::copy(stamps, reply.stamps);
  return reply;
}

std::vector<std::string> StepsOf(std::initializer_list<std::uint64_t> stamps) {
  Laps laps = FromZero();
  AddExecSteps(With(stamps), laps);
  return NamesIn(laps);
}

std::vector<std::string> InitStepsOf(const child::InitReply& ready) {
  Laps laps = FromZero();
  AddInitSteps(ready, laps);
  return NamesIn(laps);
}

TEST(HelperSteps, AreThoseOfTheStamps) {
  Laps laps = FromZero();
  AddExecSteps(With({1000, 3000, 6000, 10000, 15000}), laps);
  const auto steps = laps.Steps();
  EXPECT_EQ(NamesIn(laps),
            (std::vector<std::string>{"send", "prepare", "exec", "run", "descendants", "report"}));
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_EQ(steps.at(i).duration, std::chrono::microseconds(i + 1));
}

TEST(HelperSteps, WhatCannotBeToldApartIsOne) {
  EXPECT_THAT(StepsOf({1000, 3000, 0, 10000, 15000}),
              ElementsAre("send", "prepare", "exec+run", "descendants", "report"));
  EXPECT_THAT(StepsOf({1000, 0, 6000, 10000, 15000}),
              ElementsAre("send", "prepare+exec", "run", "descendants", "report"));
}

TEST(HelperSteps, WhatDidNotTakePlaceIsNone) {
  EXPECT_THAT(StepsOf({1000, 3000, 6000}), ElementsAre("send", "prepare", "exec", "report"));
  EXPECT_THAT(StepsOf({}), ElementsAre("send+report"));
}

TEST(HelperSteps, OfInitTellTheViewWhereItIsMadeFirst) {
  child::InitReply ready{};
  for (std::uint64_t i = 0; i <= child::kStampServing; ++i) ready.stamps[i] = 1000U * (i + 1U);
  EXPECT_THAT(InitStepsOf(ready), ElementsAre("init", "view", "confine", "serve", "ready"));
  for (int i = 6; i < child::kStampServing; ++i) ready.stamps[i] = 0;
  EXPECT_THAT(InitStepsOf(ready), ElementsAre("init", "view+confine", "serve", "ready"));
}

}  // namespace
}  // namespace palmshed::backends::native
