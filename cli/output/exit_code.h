// What the program's own exit status says: the table in docs/cli, which scripts rely on.
#pragma once

#include <cstdint>

#include "palmshed/result.h"

namespace palmshed::cli {

/// An exit status of this program. Values without a name are those of the sandboxed program.
enum class ExitCode : std::uint8_t {
  kOk = 0,
  kUnhealthy = 1,        ///< `doctor`: a control that isolates does not work.
  kTimedOut = 124,       ///< The wall-clock limit ended the program.
  kFailed = 125,         ///< Bad usage, or a failure of ours.
  kNotExecutable = 126,  ///< The program exists and cannot be executed.
  kNotFound = 127,       ///< There is no such program.
  kLimit = 137,          ///< Another limit ended the program.
};

/// 128 + n, as a shell reports a program that signal `signal` has ended.
ExitCode ForSignal(int signal);

/// The status that stands for `result`. `stop_signal` is the signal that made us cancel it, else 0.
ExitCode ForResult(const ExecResult& result, int stop_signal);

}  // namespace palmshed::cli
