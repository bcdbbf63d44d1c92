// Identifiers of sandboxes and executions.
#pragma once

#include <string>
#include <string_view>

namespace palmshed {

/// `prefix` and 16 random lower-case hex digits.
std::string MakeId(std::string_view prefix);

}  // namespace palmshed
