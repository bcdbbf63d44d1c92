// A whole run: engine, sandbox, program, and everything gone again.
#pragma once

#include "cli/commands/run_request.h"
#include "cli/output/exit_code.h"

namespace palmshed::cli {

/// Returns when nothing of the sandbox is left.
ExitCode RunOnce(RunRequest request);

}  // namespace palmshed::cli
