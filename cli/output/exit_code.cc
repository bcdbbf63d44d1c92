#include "cli/output/exit_code.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "palmshed/result.h"

namespace palmshed::cli {
namespace {

bool HasEvidence(const Termination& termination, std::string_view key) {
  return std::ranges::any_of(termination.evidence,
                             [key](const auto& entry) { return entry.first == key; });
}

ExitCode ForStartupFailure(const Termination& termination) {
  if (termination.stage != "exec") return ExitCode::kFailed;
  // A script whose interpreter is missing is ENOENT as well, though the file itself is there.
  const bool absent = termination.sys_errno == ENOENT && !HasEvidence(termination, "file_exists");
  return absent ? ExitCode::kNotFound : ExitCode::kNotExecutable;
}

}  // namespace

ExitCode ForSignal(int signal) { return static_cast<ExitCode>(128 + signal); }

ExitCode ForResult(const ExecResult& result, int stop_signal) {
  switch (result.termination.cause) {
    case Cause::kExited:
    case Cause::kSignaled:
      return static_cast<ExitCode>(result.exit_code);
    case Cause::kWallTimeout:
      return ExitCode::kTimedOut;
    case Cause::kCpuTime:
    case Cause::kMemory:
    case Cause::kDisk:
    case Cause::kPids:
      return ExitCode::kLimit;
    case Cause::kCancelled:
      return ForSignal(stop_signal != 0 ? stop_signal : SIGINT);
    case Cause::kStartupFailed:
      return ForStartupFailure(result.termination);
    case Cause::kBackendLost:
    case Cause::kInternal:
      return ExitCode::kFailed;
  }
  return ExitCode::kFailed;
}

}  // namespace palmshed::cli
