#include "cli/values/numbers.h"

#include <gtest/gtest.h>

#include <string_view>

namespace palmshed::cli {
namespace {

TEST(ParseCount, TakesWholeNumbersOnly) {
  EXPECT_EQ(*ParseCount("0", "--pids-limit"), 0U);
  EXPECT_EQ(*ParseCount("64", "--pids-limit"), 64U);
  for (const std::string_view text : {"", "-1", "1.5", "6x", " 6", "99999999999999999999"}) {
    const auto count = ParseCount(text, "--pids-limit");
    ASSERT_FALSE(count) << text;
    EXPECT_EQ(count.error().field, "--pids-limit");
  }
}

TEST(ParseCores, TakesFiniteNumbersOnly) {
  EXPECT_EQ(*ParseCores("0.5", "--cpus"), 0.5);
  EXPECT_EQ(*ParseCores("2", "--cpus"), 2.0);
  for (const std::string_view text : {"", "-1", "inf", "nan", "1,5", "half"}) {
    EXPECT_FALSE(ParseCores(text, "--cpus")) << text;
  }
}

}  // namespace
}  // namespace palmshed::cli
