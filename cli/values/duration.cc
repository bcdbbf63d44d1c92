#include "cli/values/duration.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/values/flag_error.h"
#include "palmshed/error.h"
#include "palmshed/units.h"

namespace palmshed::cli {
namespace {

constexpr std::array<std::pair<std::string_view, std::uint64_t>, 4> kUnits{
    {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}}};
/// The specification's greatest time: 2^53 ms, what every language's numbers hold exactly.
constexpr std::uint64_t kMostMillis = 1ULL << 53;
constexpr std::size_t kMostDecimals = 9;

std::optional<std::uint64_t> ParseDigits(std::string_view digits) {
  std::uint64_t value = 0;
  const char* begin = digits.data();
  const char* end = begin + digits.size();
  const auto [stop, problem] = std::from_chars(begin, end, value);
  if (problem != std::errc{} || stop != end) return std::nullopt;
  return value;
}

/// `digits` decimals of a unit, in milliseconds; nullopt when they are no whole number of them.
std::optional<std::uint64_t> ParseDecimals(std::string_view digits, std::uint64_t unit) {
  if (digits.size() > kMostDecimals) return std::nullopt;
  const auto value = ParseDigits(digits);
  std::uint64_t scale = 1;
  for (std::size_t i = 0; i < digits.size(); ++i) scale *= 10;
  if (!value || *value * unit % scale != 0) return std::nullopt;
  return *value * unit / scale;
}

std::optional<std::uint64_t> ParseNumber(std::string_view number, std::uint64_t unit) {
  const std::size_t point = number.find('.');
  const auto whole = ParseDigits(number.substr(0, point));
  if (!whole || *whole > kMostMillis / unit) return std::nullopt;
  if (point == std::string_view::npos) return *whole * unit;
  const auto decimals = ParseDecimals(number.substr(point + 1), unit);
  if (!decimals) return std::nullopt;
  return *whole * unit + *decimals;
}

}  // namespace

Result<Millis> ParseDuration(std::string_view text, std::string_view flag) {
  if (text == "0") return Millis(0);
  const std::size_t split = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view suffix = text.substr(split);
  const auto* const unit = std::ranges::find(kUnits, suffix, [](const auto& u) { return u.first; });
  if (unit == kUnits.end()) {
    return std::unexpected(
        FlagError(flag, text, "a time needs one of the units ms, s, m, h (30s)"));
  }
  const auto millis = ParseNumber(text.substr(0, split), unit->second);
  if (!millis || *millis > kMostMillis) {
    return std::unexpected(FlagError(
        flag, text, "must be a whole number of milliseconds, at least 0 and at most 2^53"));
  }
  return Millis(static_cast<std::int64_t>(*millis));
}

std::string FormatDuration(Millis duration) {
  const auto millis = duration.count();
  if (millis < 1000) return fmt::format("{} ms", millis);
  std::string seconds = fmt::format("{}.{:03}", millis / 1000, millis % 1000);
  seconds.erase(seconds.find_last_not_of('0') + 1);
  if (seconds.back() == '.') seconds.pop_back();
  return seconds + " s";
}

}  // namespace palmshed::cli
