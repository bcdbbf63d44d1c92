#include "cli/values/numbers.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <expected>
#include <optional>
#include <string_view>
#include <system_error>

#include "cli/values/flag_error.h"
#include "palmshed/error.h"

namespace palmshed::cli {
namespace {

template <class T>
std::optional<T> ParseAll(std::string_view text) {
  T value{};
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [stop, problem] = std::from_chars(begin, end, value);
  if (problem != std::errc{} || stop != end) return std::nullopt;
  return value;
}

}  // namespace

Result<std::uint64_t> ParseCount(std::string_view text, std::string_view flag) {
  if (const auto value = ParseAll<std::uint64_t>(text)) return *value;
  return std::unexpected(FlagError(flag, text, "must be a whole number, at least 0"));
}

Result<double> ParseCores(std::string_view text, std::string_view flag) {
  const auto value = ParseAll<double>(text);
  if (value && std::isfinite(*value) && *value >= 0) return *value;
  return std::unexpected(FlagError(flag, text, "must be a number of cores such as 0.5"));
}

}  // namespace palmshed::cli
