// `--help`.
#pragma once

#include <string>

#include "cli/commands/verb.h"

namespace palmshed::cli {

/// The help of the program as a whole.
std::string HelpText();
/// The help of one verb.
std::string HelpText(const Verb& verb);

}  // namespace palmshed::cli
