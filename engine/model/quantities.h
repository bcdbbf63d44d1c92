// Numbers of requests, read exactly: no value is rounded, wrapped or clamped on its way in.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace palmshed::model {

/// The largest time, size or count of a request: every integer up to it is exact in every language
/// that keeps numbers in doubles.
inline constexpr std::uint64_t kMaxInteger = std::uint64_t{1} << 53;

/// Why a number cannot stand for a whole quantity.
enum class Misfit : std::uint8_t { kNotANumber, kNegative, kFraction, kTooLarge };

/// Completes the sentence "<field> ...", `unit` being e.g. "milliseconds".
std::string Explain(Misfit misfit, std::string_view unit);

/// The decimal number `text` (JSON grammar: sign, fraction and exponent allowed) times
/// 1024^`power`, when it is whole and at most kMaxInteger.
std::expected<std::uint64_t, Misfit> WholeNumber(std::string_view text, int power = 0);

/// The decimal number `text` as a double.
std::expected<double, Misfit> RealNumber(std::string_view text);

}  // namespace palmshed::model
