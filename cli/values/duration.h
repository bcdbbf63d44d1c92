// Times as people write them: 30s, 1.5m, 250ms.
#pragma once

#include <string>
#include <string_view>

#include "palmshed/error.h"
#include "palmshed/units.h"

namespace palmshed::cli {

/// Parses a number with a unit (ms, s, m, h). Only 0, which is no limit, goes without a unit: a
/// bare number would leave open what it counts. `flag` is named in the error.
Result<Millis> ParseDuration(std::string_view text, std::string_view flag);

/// E.g. "250 ms", "1.5 s", "90 s".
std::string FormatDuration(Millis duration);

}  // namespace palmshed::cli
