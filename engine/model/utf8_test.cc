#include "model/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace palmshed::model {
namespace {

using std::string_view_literals::operator""sv;

TEST(Utf8, AcceptsEveryWellFormedLength) {
  for (const std::string_view text :
       {""sv, "a\0b"sv, "\x7F"sv, "\xC2\x80"sv, "\xDF\xBF"sv, "\xE0\xA0\x80"sv, "\xED\x9F\xBF"sv,
        "\xEE\x80\x80"sv, "\xEF\xBF\xBD"sv, "\xF0\x90\x80\x80"sv, "\xF4\x8F\xBF\xBF"sv}) {
    EXPECT_TRUE(IsUtf8(text)) << testing::PrintToString(text);
  }
}

TEST(Utf8, RefusesOverlongSurrogateAndTruncatedForms) {
  for (const std::string_view bytes :
       {"\x80"sv, "\xC0\x80"sv, "\xC1\xBF"sv, "\xE0\x9F\xBF"sv, "\xED\xA0\x80"sv,
        "\xF0\x8F\xBF\xBF"sv, "\xF4\x90\x80\x80"sv, "\xF5\x80\x80\x80"sv, "\xFF"sv, "\xC3"sv,
        "\xE2\x82"sv, "\xF0\x9F\x98"sv, "\xE2\x28\xA1"sv, "ok\xE2\x82\x28"sv}) {
    EXPECT_FALSE(IsUtf8(bytes)) << testing::PrintToString(bytes);
  }
}

TEST(Utf8, ReplacesOnlyWhatIsNotText) {
  EXPECT_EQ(ReplaceInvalidUtf8("h\xC3\xA9!"), "h\xC3\xA9!");
  EXPECT_EQ(ReplaceInvalidUtf8("a\xFF\xC3z"), "a\xEF\xBF\xBD\xEF\xBF\xBDz");
}

TEST(Utf8, CountsAtMostThreeCutBytes) {
  EXPECT_EQ(CutCharacter("abc"), 0U);
  EXPECT_EQ(CutCharacter("\x82\xAC!"), 2U);
  EXPECT_EQ(CutCharacter("\x80\x80\x80\x80\x80"), 3U);
  EXPECT_EQ(CutCharacter(""), 0U);
}

TEST(Utf8, ShownNamesAreShortAndHarmless) {
  EXPECT_EQ(Shown("PATH"), "PATH");
  EXPECT_EQ(Shown("A\nB\x1B[31m\x7F"sv), "A?B?[31m?");
  EXPECT_EQ(Shown("A\0B"sv), "A?B");
  EXPECT_EQ(Shown(std::string(65, 'x')), std::string(64, 'x') + "...");
  EXPECT_TRUE(IsUtf8(Shown(std::string(63, 'x') + "\xC3\xA9")));
}

}  // namespace
}  // namespace palmshed::model
