// Plain numbers of flags.
#pragma once

#include <cstdint>
#include <string_view>

#include "palmshed/error.h"

namespace palmshed::cli {

/// Parses a whole number, at least 0.
Result<std::uint64_t> ParseCount(std::string_view text, std::string_view flag);

/// Parses a number of CPU cores such as "0.5".
Result<double> ParseCores(std::string_view text, std::string_view flag);

}  // namespace palmshed::cli
