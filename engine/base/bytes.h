// Building messages byte by byte.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace palmshed {

/// The object representation of a plain struct; valid as long as `value`.
template <class T>
  requires std::is_trivially_copyable_v<T>
std::span<const std::byte> BytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

inline void Append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// The characters and a NUL.
inline void AppendString(std::vector<std::byte>& to, const std::string& text) {
  Append(to, std::as_bytes(std::span(text.c_str(), text.size() + 1)));
}

}  // namespace palmshed
