// Bytes of unknown origin on their way into JSON, which holds text only.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace palmshed::model {

/// True for well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool IsUtf8(std::string_view bytes);

/// `bytes` with each byte that is not part of well-formed UTF-8 replaced by U+FFFD. For messages
/// that people read; content travels as base64 instead.
std::string ReplaceInvalidUtf8(std::string_view bytes);

/// How many bytes at the start continue a character whose beginning was cut off; at most 3.
std::size_t CutCharacter(std::string_view bytes);

/// A name chosen by a caller, short and harmless enough for an error message.
std::string Shown(std::string_view name);

}  // namespace palmshed::model
