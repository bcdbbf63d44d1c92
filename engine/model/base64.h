// Base64 (RFC 4648, section 4: the standard alphabet, padded).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace palmshed::model {

std::string EncodeBase64(std::string_view bytes);

/// nullopt for anything that EncodeBase64 would not have written.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace palmshed::model
