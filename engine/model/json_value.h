// A JSON document as a tree that keeps numbers as they were written: 9007199254740993 does not
// become 9007199254740992 before somebody has looked at it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "palmshed/error.h"

namespace palmshed::model {

// Bounds of a document. The number of values is bounded too, because a value takes more memory
// than the two bytes it can be written in.
inline constexpr std::size_t kMaxDocumentBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMaxDocumentDepth = 32;
inline constexpr std::size_t kMaxDocumentValues = std::size_t{1} << 18;

struct JsonValue {
  enum class Kind : std::uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  bool flag = false;               ///< kBool
  std::string name{};              ///< In an object: the member's name.
  std::string text{};              ///< kString: the text; kNumber: as written.
  std::vector<JsonValue> items{};  ///< kArray, kObject; duplicate names are still there.
};

/// Parses strict JSON (RFC 8259, UTF-8). INVALID_OPTIONS otherwise, and beyond the bounds above.
Result<JsonValue> ParseJson(std::string_view json);

/// "a string", "an object", ..., for error messages.
std::string_view Describe(JsonValue::Kind kind);

}  // namespace palmshed::model
