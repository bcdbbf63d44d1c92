// What a flag with a wrong value is answered.
#pragma once

#include <string_view>

#include "palmshed/error.h"

namespace palmshed::cli {

/// INVALID_OPTIONS: "<flag> <text>: <problem>".
Error FlagError(std::string_view flag, std::string_view text, std::string_view problem);

}  // namespace palmshed::cli
