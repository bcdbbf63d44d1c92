#include "cli/values/duration.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "palmshed/error.h"
#include "palmshed/units.h"

namespace palmshed::cli {
namespace {

TEST(ParseDuration, ReadsEveryUnit) {
  const std::pair<std::string_view, Millis::rep> cases[]{
      {"0", 0},
      {"0s", 0},
      {"250ms", 250},
      {"30s", 30'000},
      {"1.5s", 1500},
      {"0.001s", 1},
      {"2m", 120'000},
      {"1h", 3'600'000},
      {"0.5h", 1'800'000},
      {"1.25m", 75'000},
      {"9007199254740992ms", 9'007'199'254'740'992}};
  for (const auto& [text, millis] : cases) {
    const auto parsed = ParseDuration(text, "--timeout");
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(parsed->count(), millis) << text;
  }
}

TEST(ParseDuration, RefusesWhatLeavesTheTimeOpen) {
  for (const std::string_view text :
       {"", "30", "s", "-5s", "5 s", "5S", "5sec", "1h30m", "0.0001s", "1.5ms", "1.2.3s", ".5s",
        "5.s", "1e3s", "NaNs", "9007199254740993ms", "99999999999999999999s", "9007199254741s"}) {
    const auto parsed = ParseDuration(text, "--timeout");
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidOptions);
    EXPECT_EQ(parsed.error().field, "--timeout");
    EXPECT_TRUE(parsed.error().message.contains(std::string(text))) << parsed.error().message;
  }
}

TEST(FormatDuration, UsesTheUnitThatReadsWell) {
  EXPECT_EQ(FormatDuration(Millis(0)), "0 ms");
  EXPECT_EQ(FormatDuration(Millis(250)), "250 ms");
  EXPECT_EQ(FormatDuration(Millis(2000)), "2 s");
  EXPECT_EQ(FormatDuration(Millis(1500)), "1.5 s");
  EXPECT_EQ(FormatDuration(Millis(1005)), "1.005 s");
  EXPECT_EQ(FormatDuration(Millis(100'000)), "100 s");
}

}  // namespace
}  // namespace palmshed::cli
