// Bytes in documents: base64 with padding (RFC 4648, section 4).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace palmshed::conformance {

std::string ToBase64(std::string_view bytes);
/// nullopt when it is not base64.
std::optional<std::string> FromBase64(std::string_view text);

}  // namespace palmshed::conformance
