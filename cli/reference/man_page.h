// The manual page palmshed(1).
#pragma once

#include <string>

namespace palmshed::cli {

std::string ManPage();

}  // namespace palmshed::cli
