// Which flag stands for a field of the specification.
#pragma once

#include <string_view>

namespace palmshed::cli {

/// The flag of `run` that sets `field`, which may name a part of it ("mounts[0].source"); empty
/// when there is none.
std::string_view FlagFor(std::string_view field);

}  // namespace palmshed::cli
