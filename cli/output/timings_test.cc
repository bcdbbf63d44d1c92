#include "cli/output/timings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace palmshed::cli {
namespace {

using std::chrono::microseconds;

TEST(Timings, CountsEachStepFromTheEndOfTheOneBefore) {
  const Timings::Clock::time_point start{};
  Timings timings(start);
  timings.Lap("engine", {}, start + microseconds(120));
  timings.Lap("create", {}, start + microseconds(1120));
  EXPECT_THAT(timings.Lines(), testing::ElementsAre("timing engine                     120 us",
                                                    "timing create                    1000 us",
                                                    "timing total                     1120 us"));
}

TEST(Timings, ShowsThePartsOfAStepAndWhatIsInNoneOfThem) {
  const Timings::Clock::time_point start{};
  Timings timings(start);
  timings.Lap("exec",
              {{.step = "send", .duration = microseconds(20)},
               {.step = "exec+run", .duration = microseconds(900)}},
              start + microseconds(1000));
  EXPECT_THAT(timings.Lines(), testing::ElementsAre("timing exec.send                   20 us",
                                                    "timing exec.exec+run              900 us",
                                                    "timing exec.call                   80 us",
                                                    "timing total                     1000 us"));
}

}  // namespace
}  // namespace palmshed::cli
