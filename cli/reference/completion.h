// Completion scripts for shells.
#pragma once

#include <string>

namespace palmshed::cli {

std::string BashCompletion();
std::string ZshCompletion();
std::string FishCompletion();

}  // namespace palmshed::cli
