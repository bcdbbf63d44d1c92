// Quantities that cross the public API. A raw integer never carries a size or a time.
#pragma once

#include <chrono>
#include <cstdint>

namespace palmshed {
inline namespace v1 {

/// A span of time on CLOCK_MONOTONIC, in whole milliseconds. Zero as a limit means "no limit".
using Millis = std::chrono::milliseconds;

/// A size in bytes. Zero as a limit means "no limit".
enum class Bytes : std::uint64_t {};

/// The number of bytes in `size`.
constexpr std::uint64_t Count(Bytes size) { return static_cast<std::uint64_t>(size); }

/// Literals for sizes, all powers of 1024: `512_MiB`.
namespace literals {
/// Bytes.
constexpr Bytes operator""_B(unsigned long long n) { return Bytes{n}; }
/// Units of 1024 bytes.
constexpr Bytes operator""_KiB(unsigned long long n) { return Bytes{n << 10}; }
/// Units of 1024 KiB.
constexpr Bytes operator""_MiB(unsigned long long n) { return Bytes{n << 20}; }
/// Units of 1024 MiB.
constexpr Bytes operator""_GiB(unsigned long long n) { return Bytes{n << 30}; }
}  // namespace literals

}  // namespace v1
}  // namespace palmshed
