// From how the backend saw an execution end to its result: status, exit code and termination.
#pragma once

#include "backends/backend.h"
#include "palmshed/result.h"

namespace palmshed::run {

/// Adds what the program itself did, when something else decided the outcome.
void AddOwnEnd(const backends::ExecEnd& end, Termination& termination);

/// The outcome when the engine decided nothing: the program's own end, or the limit that it met.
void ConcludeByItself(const backends::ExecEnd& end, ExecResult& result);

}  // namespace palmshed::run
