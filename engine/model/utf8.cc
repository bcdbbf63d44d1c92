#include "model/utf8.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace palmshed::model {
namespace {

constexpr std::size_t kShownBytes = 64;

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// What may follow a lead byte: how many bytes, and the bounds of the first of them. The bounds are
// what excludes overlong forms, surrogates and code points above U+10FFFF (Unicode, table 3-7).
struct Sequence {
  std::size_t size;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
};

Sequence SequenceOf(unsigned char lead) {
  if (lead < 0x80) return {1};
  if (lead >= 0xC2 && lead <= 0xDF) return {2};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead >= 0xE1 && lead <= 0xEF) return {3};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead >= 0xF1 && lead <= 0xF3) return {4};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

// Size of the character at the start of `bytes` (not empty); 0 when there is none.
std::size_t CharacterSize(std::string_view bytes) {
  const Sequence sequence = SequenceOf(static_cast<unsigned char>(bytes[0]));
  if (sequence.size < 2) return sequence.size;
  if (bytes.size() < sequence.size) return 0;
  const auto second = static_cast<unsigned char>(bytes[1]);
  if (second < sequence.low || second > sequence.high) return 0;
  const std::string_view rest = bytes.substr(2, sequence.size - 2);
  return std::ranges::all_of(rest, IsContinuation) ? sequence.size : 0;
}

}  // namespace

bool IsUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t size = CharacterSize(bytes);
    if (size == 0) return false;
    bytes.remove_prefix(size);
  }
  return true;
}

std::string ReplaceInvalidUtf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t size = CharacterSize(bytes);
    text += size == 0 ? std::string_view("\xEF\xBF\xBD") : bytes.substr(0, size);
    bytes.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return text;
}

std::size_t CutCharacter(std::string_view bytes) {
  const std::string_view start = bytes.substr(0, 3);
  const auto end = std::ranges::find_if_not(start, IsContinuation);
  return static_cast<std::size_t>(end - start.begin());
}

std::string Shown(std::string_view name) {
  std::string text = ReplaceInvalidUtf8(name.substr(0, kShownBytes));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  if (name.size() > kShownBytes) text += "...";
  return text;
}

}  // namespace palmshed::model
