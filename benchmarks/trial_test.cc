#include "benchmarks/trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace palmshed::benchmarks {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Trial, OfACommandThatWorksHasNoReason) {
  EXPECT_THAT(Trial({"/bin/sh", "-c", "echo much; exit 0"}, seconds(60)), IsEmpty());
}

TEST(Trial, TellsWhyInTheCommandsOwnWords) {
  EXPECT_EQ(Trial({"/bin/sh", "-c", "echo no cgroups here >&2; exit 3"}, seconds(60)),
            "no cgroups here");
}

TEST(Trial, TellsTheStatusOfWhoSaysNothing) {
  EXPECT_THAT(Trial({"/bin/false"}, seconds(60)), HasSubstr("wait status 256"));
  EXPECT_THAT(Trial({"/nonexistent"}, seconds(60)), HasSubstr("wait status"));
}

TEST(Trial, EndsWhatDoesNotEnd) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Trial({"/bin/sh", "-c", "sleep 1000 & sleep 1000"}, std::chrono::milliseconds(100)),
            "did not end in time");
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(60));
}

TEST(OnPath, FindsProgramsOnly) {
  EXPECT_THAT(OnPath("sh"), HasSubstr("/sh"));
  EXPECT_THAT(OnPath("there-is-no-such-program"), IsEmpty());
}

}  // namespace
}  // namespace palmshed::benchmarks
