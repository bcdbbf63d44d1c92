#include "base/laps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "palmshed/result.h"

namespace palmshed {
namespace {

using namespace std::chrono_literals;

constexpr Laps::Clock::time_point kBegin{1h};

MATCHER_P2(Took, step, duration, "") { return arg.step == step && arg.duration == duration; }

TEST(Laps, EachStepBeginsWhereTheLastEnded) {
  Laps laps(true, kBegin);
  laps.EndAt("plan", kBegin + 10us);
  laps.EndAt("run", kBegin + 1010us);
  EXPECT_THAT(laps.Steps(), testing::ElementsAre(Took("plan", 10us), Took("run", 1000us)));
}

// Each of them rounded would be nothing at all.
TEST(Laps, MicrosecondsAddUpToTheWhole) {
  Laps laps(true, kBegin);
  for (int i = 1; i <= 10; ++i) laps.EndAt("step", kBegin + i * 700ns);
  std::chrono::microseconds sum{};
  for (const StepTime& step : laps.Steps()) sum += step.duration;
  EXPECT_EQ(sum, 7us);
}

TEST(Laps, SomebodyElseGoesOn) {
  Laps laps(true, kBegin);
  laps.EndAt("plan", kBegin + 1us);
  Laps more(true, kBegin + 500us);
  more.EndAt("run", kBegin + 3us);
  laps.Append(more);
  EXPECT_THAT(laps.Steps(), testing::ElementsAre(Took("plan", 1us), Took("run", 2us)));
}

TEST(Laps, NotWantedNoteNothing) {
  Laps laps(false);
  laps.End("plan");
  Laps more;
  more.End("run");
  laps.Append(more);
  EXPECT_THAT(laps.Steps(), testing::IsEmpty());
}

}  // namespace
}  // namespace palmshed
