// Short texts for the kernel: paths in /proc, maps, mount options.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace palmshed::child {

/// Builds a NUL-terminated text of at most 127 bytes; what does not fit is dropped, so callers keep
/// to texts whose length they know.
class ShortText {
 public:
  ShortText& Append(std::string_view text) {
    for (const char c : text) Push(c);
    return *this;
  }
  ShortText& Append(std::uint64_t number) {
    char digits[20];
    std::size_t count = 0;
    do {
      digits[count++] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    while (count > 0) Push(digits[--count]);
    return *this;
  }
  const char* c_str() const { return bytes_; }
  std::size_t size() const { return size_; }

 private:
  void Push(char c) {
    if (size_ + 1 < sizeof bytes_) bytes_[size_++] = c;
  }

  char bytes_[128] = {};
  std::size_t size_ = 0;
};

/// The number that `text` starts with; 0 when it starts with none.
constexpr std::uint32_t ParseNumber(std::string_view text) {
  std::uint32_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') break;
    number = number * 10 + static_cast<std::uint32_t>(c - '0');
  }
  return number;
}

}  // namespace palmshed::child
