// From our arguments to a verb.
#pragma once

#include <string>
#include <vector>

#include "cli/output/exit_code.h"

namespace palmshed::cli {

/// Runs the verb that `arguments` (without our own name) ask for. Only that verb's options are
/// ever constructed.
ExitCode Dispatch(std::vector<std::string> arguments);

}  // namespace palmshed::cli
