#include "model/quantities.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>

#include "palmshed/error.h"
#include "palmshed/json.h"
#include "palmshed/units.h"

namespace palmshed::model {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = kKiB * 1024;
constexpr std::uint64_t kGiB = kMiB * 1024;
constexpr std::uint64_t kTiB = kGiB * 1024;

TEST(ParseBytes, ReadsEveryUnit) {
  const struct {
    std::string_view text;
    std::uint64_t bytes;
  } cases[] = {
      {"512B", 512},
      {"512 b", 512},
      {"0B", 0},
      {"1k", kKiB},
      {"1K", kKiB},
      {"1kb", kKiB},
      {"1KB", kKiB},
      {"1KiB", kKiB},
      {"512KiB", 512 * kKiB},
      {"64m", 64 * kMiB},
      {"64MB", 64 * kMiB},
      {"64mib", 64 * kMiB},
      {"100 MB", 100 * kMiB},
      {"2g", 2 * kGiB},
      {"2GB", 2 * kGiB},
      {"2GiB", 2 * kGiB},
      {"1t", kTiB},
      {"1TB", kTiB},
      {"1TiB", kTiB},
      {"1.5GB", 3 * kGiB / 2},
      {"0.5k", 512},
      {"1.50000000000000000000000000000000000000000000000000GB", 3 * kGiB / 2},
      {"0.0000000000009094947017729282379150390625t", 1},  // 2^-40
      {"007MB", 7 * kMiB},
      {"8192TB", kMaxInteger},
      {"9007199254740992B", kMaxInteger},
      {"0.000t", 0},
  };
  for (const auto& [text, bytes] : cases) {
    const Result<Bytes> size = ParseBytes(text, "memory");
    ASSERT_TRUE(size) << text << ": " << size.error().message;
    EXPECT_EQ(Count(*size), bytes) << text;
  }
}

TEST(ParseBytes, RefusesEverythingElseNamingTheField) {
  const std::string_view cases[] = {
      "",
      "512",
      "MB",
      " 1MB",
      "1MB ",
      "1  MB",
      "-1MB",
      "+1MB",
      "1e3MB",
      "1,5MB",
      ".5MB",
      "1.MB",
      "1..5MB",
      "1.2.3MB",
      "0x10B",
      "1PB",
      "1Mb/s",
      "1 M B",
      "NaN",
      "InfMB",
      "0.1k",
      "1.5B",
      "8193TB",
      "9007199254740993B",
      "9223372036854775808KiB",
      "18446744073709551616B",
      "99999999999999999999999999999999TB",
      "0.00000000000000000000000000000000000000000000000001t",
      "1\tMB",
      "1MB\n",
      std::string_view("1MB\0", 4),
  };
  for (const std::string_view text : cases) {
    const Result<Bytes> size = ParseBytes(text, "mounts[0].size");
    ASSERT_FALSE(size) << text;
    EXPECT_EQ(size.error().code, ErrorCode::kInvalidOptions) << text;
    EXPECT_EQ(size.error().field, "mounts[0].size") << text;
  }
}

TEST(ParseBytes, SaysWhatIsWrong) {
  EXPECT_EQ(ParseBytes("512", "memory").error().message,
            "memory must be a number followed by B, KB, MB, GB or TB (such as \"64MB\")");
  EXPECT_EQ(ParseBytes("1.5B", "memory").error().message, "memory must be a whole number of bytes");
  EXPECT_EQ(ParseBytes("9999TB", "memory").error().message,
            "memory must be at most 9007199254740992 bytes");
}

TEST(WholeNumber, IsExactInEveryNotation) {  // C053
  const struct {
    std::string_view text;
    std::uint64_t value;
  } cases[] = {{"0", 0},
               {"-0", 0},
               {"0.000", 0},
               {"0e99999999999999999999", 0},
               {"1000", 1000},
               {"1000.0", 1000},
               {"1e3", 1000},
               {"1E+3", 1000},
               {"12.5e1", 125},
               {"100e-2", 1},
               {"2147483648", 2147483648},
               {"4294967296", 4294967296},
               {"9007199254740991", kMaxInteger - 1},
               {"9007199254740992", kMaxInteger},
               {"9.007199254740992e15", kMaxInteger}};
  for (const auto& [text, value] : cases) {
    const auto whole = WholeNumber(text);
    ASSERT_TRUE(whole) << text;
    EXPECT_EQ(*whole, value) << text;
  }
}

TEST(WholeNumber, RefusesWhatWouldHaveToBeRounded) {  // C053
  const struct {
    std::string_view text;
    Misfit misfit;
  } cases[] = {{"-1", Misfit::kNegative},
               {"-0.5", Misfit::kNegative},
               {"-1e308", Misfit::kNegative},
               {"0.5", Misfit::kFraction},
               {"1e-1", Misfit::kFraction},
               {"1e-99999999999999999999", Misfit::kFraction},
               {"4503599627370496.4", Misfit::kFraction},
               {"0.99999999999999999999999999999", Misfit::kFraction},
               {"9007199254740992.5", Misfit::kFraction},
               {"9007199254740993", Misfit::kTooLarge},
               {"9007199254740993.0", Misfit::kTooLarge},
               {"9223372036854775808", Misfit::kTooLarge},
               {"18446744073709551616", Misfit::kTooLarge},
               {"1e308", Misfit::kTooLarge},
               {"1e99999999999999999999", Misfit::kTooLarge},
               {"", Misfit::kNotANumber},
               {"NaN", Misfit::kNotANumber},
               {"+1", Misfit::kNotANumber},
               {"1e", Misfit::kNotANumber},
               {"1.", Misfit::kNotANumber},
               {" 1", Misfit::kNotANumber}};
  for (const auto& [text, misfit] : cases) {
    const auto whole = WholeNumber(text);
    ASSERT_FALSE(whole) << text;
    EXPECT_EQ(whole.error(), misfit) << text;
  }
}

TEST(RealNumber, IsTheNearestDouble) {
  EXPECT_EQ(RealNumber("0.3"), 0.3);
  EXPECT_EQ(RealNumber("0.1"), 0.1);
  EXPECT_EQ(RealNumber("-2.5e-1"), -0.25);
  EXPECT_EQ(RealNumber("1e308"), 1e308);
}

TEST(RealNumber, RefusesWhatNoDoubleHolds) {
  EXPECT_EQ(RealNumber("1e400").error(), Misfit::kTooLarge);
  EXPECT_EQ(RealNumber("inf").error(), Misfit::kNotANumber);
  EXPECT_EQ(RealNumber("nan").error(), Misfit::kNotANumber);
}

}  // namespace
}  // namespace palmshed::model
