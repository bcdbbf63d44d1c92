// Which build of the program this is.
#pragma once

#include <string>

namespace palmshed {

/// The GNU build id of the program or library that holds this code, in hex digits; empty when its
/// linker gave it none.
std::string BuildId();

}  // namespace palmshed
