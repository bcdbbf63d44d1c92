#include "model/quantities.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <system_error>

#include "base/result.h"
#include "palmshed/error.h"
#include "palmshed/json.h"
#include "palmshed/units.h"

namespace palmshed {
namespace model {
namespace {

// digits * 10^exponent, without leading or trailing zeros; zero has no digits.
struct Decimal {
  bool negative = false;
  std::string digits;
  long exponent = 0;
};

constexpr long kMaxDigits = 16;     // 10^16 is more than kMaxInteger.
constexpr long kMaxDecimals = 40;   // 2^-40 is the finest fraction that 1024^4 makes whole.
constexpr long kFarAway = 1 << 20;  // Stands for every exponent that is out of all proportion.

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string_view TakeDigits(std::string_view& text) {
  const auto end = std::ranges::find_if_not(text, IsDigit);
  const auto count = static_cast<std::size_t>(end - text.begin());
  const std::string_view taken = text.substr(0, count);
  text.remove_prefix(count);
  return taken;
}

bool TakeOneOf(std::string_view& text, std::string_view chars) {
  if (text.empty() || !chars.contains(text.front())) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<long> TakeExponent(std::string_view& text) {
  if (!TakeOneOf(text, "eE")) return 0;
  const bool negative = text.starts_with('-');
  (void)TakeOneOf(text, "+-");  // Ignoring, because the sign is optional.
  const std::string_view digits = TakeDigits(text);
  if (digits.empty()) return std::nullopt;
  long value = 0;
  for (const char c : digits) value = std::min(value * 10 + (c - '0'), kFarAway);
  return negative ? -value : value;
}

std::optional<Decimal> ParseDecimal(std::string_view text) {
  Decimal decimal{.negative = TakeOneOf(text, "-"), .digits = {}};
  decimal.digits = TakeDigits(text);
  if (decimal.digits.empty()) return std::nullopt;
  std::string_view fraction;
  if (TakeOneOf(text, ".")) {
    fraction = TakeDigits(text);
    if (fraction.empty()) return std::nullopt;
  }
  const std::optional<long> exponent = TakeExponent(text);
  if (!exponent || !text.empty()) return std::nullopt;
  decimal.digits += fraction;
  decimal.exponent = *exponent - static_cast<long>(fraction.size());
  while (decimal.digits.ends_with('0')) {
    decimal.digits.pop_back();
    ++decimal.exponent;
  }
  decimal.digits.erase(0, decimal.digits.find_first_not_of('0'));
  return decimal;
}

void MultiplyBy1024(std::string& digits) {
  unsigned carry = 0;
  for (char& digit : digits | std::views::reverse) {
    const unsigned value = static_cast<unsigned>(digit - '0') * 1024 + carry;
    digit = static_cast<char>('0' + value % 10);
    carry = value / 10;
  }
  if (carry > 0) digits.insert(0, std::to_string(carry));
}

// The integer that `digits` spells once its last `decimals` digits are zeros.
std::expected<std::uint64_t, Misfit> DropDecimals(std::string digits, std::size_t decimals) {
  if (digits.size() < decimals) return std::unexpected(Misfit::kFraction);
  const std::size_t whole = digits.size() - decimals;
  const bool exact = digits.find_first_not_of('0', whole) == std::string::npos;
  if (!exact) return std::unexpected(Misfit::kFraction);
  std::uint64_t value = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + whole, value);
  if (end.ec != std::errc{} || value > kMaxInteger) return std::unexpected(Misfit::kTooLarge);
  return value;
}

constexpr struct {
  std::string_view name;  // Lower case.
  int power;              // Of 1024.
} kUnits[] = {
    {"b", 0}, {"k", 1},  {"kb", 1},  {"kib", 1}, {"m", 2},  {"mb", 2},  {"mib", 2},
    {"g", 3}, {"gb", 3}, {"gib", 3}, {"t", 4},   {"tb", 4}, {"tib", 4},
};

// tolower(3) follows the locale.
std::string AsciiLower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::optional<int> PowerOf(std::string_view unit) {
  const std::string name = AsciiLower(unit);
  const auto* const found = std::ranges::find(kUnits, name, [](const auto& u) { return u.name; });
  if (found == std::end(kUnits)) return std::nullopt;
  return found->power;
}

}  // namespace

std::string Explain(Misfit misfit, std::string_view unit) {
  switch (misfit) {
    case Misfit::kNotANumber:
      return std::string("must be a number of ").append(unit);
    case Misfit::kNegative:
      return "must not be negative";
    case Misfit::kFraction:
      return std::string("must be a whole number of ").append(unit);
    case Misfit::kTooLarge:
      return "must be at most " + std::to_string(kMaxInteger) + " " + std::string(unit);
  }
  PALMSHED_UNREACHABLE();
}

std::expected<std::uint64_t, Misfit> WholeNumber(std::string_view text, int power) {
  std::optional<Decimal> decimal = ParseDecimal(text);
  if (!decimal) return std::unexpected(Misfit::kNotANumber);
  std::string& digits = decimal->digits;
  if (digits.empty()) return 0;
  if (decimal->negative) return std::unexpected(Misfit::kNegative);
  const long magnitude = static_cast<long>(digits.size()) + decimal->exponent;
  if (magnitude > kMaxDigits) return std::unexpected(Misfit::kTooLarge);
  if (decimal->exponent < -kMaxDecimals) return std::unexpected(Misfit::kFraction);
  if (decimal->exponent > 0) digits.append(static_cast<std::size_t>(decimal->exponent), '0');
  for (int i = 0; i < power; ++i) MultiplyBy1024(digits);
  return DropDecimals(digits, static_cast<std::size_t>(std::max(0L, -decimal->exponent)));
}

std::expected<double, Misfit> RealNumber(std::string_view text) {
  if (!ParseDecimal(text)) return std::unexpected(Misfit::kNotANumber);
  double value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc{}) return std::unexpected(Misfit::kTooLarge);
  return value;
}

}  // namespace model

inline namespace v1 {

Result<Bytes> ParseBytes(std::string_view text, std::string_view field) {
  const std::size_t unit_at = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view number = text.substr(0, unit_at);
  std::string_view unit = text.substr(unit_at);
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  const std::optional<int> power = model::PowerOf(unit);
  if (!power) {
    return std::unexpected(InvalidOption(
        field, "must be a number followed by B, KB, MB, GB or TB (such as \"64MB\")"));
  }
  const auto bytes = model::WholeNumber(number, *power);
  if (!bytes) return std::unexpected(InvalidOption(field, Explain(bytes.error(), "bytes")));
  return Bytes{*bytes};
}

}  // namespace v1
}  // namespace palmshed
