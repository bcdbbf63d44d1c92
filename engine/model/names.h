// The specification's spelling of every enumeration, in one place, for reading and for printing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/files.h"
#include "palmshed/options.h"
#include "palmshed/result.h"

namespace palmshed::model {

template <class E>
struct Spelling {
  E value;
  std::string_view name;
};

/// Every value of an enumeration, in the order of its declaration.
template <class E>
std::span<const Spelling<E>> Spellings();

template <>
std::span<const Spelling<ErrorCode>> Spellings();
template <>
std::span<const Spelling<Status>> Spellings();
template <>
std::span<const Spelling<Cause>> Spellings();
template <>
std::span<const Spelling<Network>> Spellings();
template <>
std::span<const Spelling<Storage>> Spellings();
template <>
std::span<const Spelling<Descendants>> Spellings();
template <>
std::span<const Spelling<FileType>> Spellings();
template <>
std::span<const Spelling<Support>> Spellings();

/// False for a number that was cast to E without being one of its values.
template <class E>
bool IsKnown(E value) {
  for (const Spelling<E>& known : Spellings<E>()) {
    if (known.value == value) return true;
  }
  return false;
}

/// The specification's spelling. Preconditions: IsKnown(value).
template <class E>
std::string_view Spell(E value) {
  for (const Spelling<E>& known : Spellings<E>()) {
    if (known.value == value) return known.name;
  }
  PALMSHED_UNREACHABLE();
}

/// The value spelled `name`, exactly.
template <class E>
std::optional<E> FromName(std::string_view name) {
  for (const Spelling<E>& known : Spellings<E>()) {
    if (known.name == name) return known.value;
  }
  return std::nullopt;
}

/// The resource whose limit an error code stands for: "cpu", "memory" or "disk"; else empty.
std::string_view ResourceOf(ErrorCode code);

/// `"disabled", "allow" or "proxy"`, for error messages.
template <class E>
std::string Choices() {
  std::string text;
  const auto all = Spellings<E>();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) text += i + 1 == all.size() ? " or " : ", ";
    text.append("\"").append(all[i].name).append("\"");
  }
  return text;
}

}  // namespace palmshed::model
