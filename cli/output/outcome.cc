#include "cli/output/outcome.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "cli/output/exit_code.h"
#include "cli/output/note.h"
#include "cli/values/duration.h"
#include "palmshed/result.h"
#include "palmshed/units.h"

namespace palmshed::cli {
namespace {

std::string NameSignal(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

/// E.g. "64 MiB", "64.5 MiB", "900 bytes".
std::string FormatSize(std::uint64_t bytes) {
  constexpr std::uint64_t kKiB = 1U << 10;
  constexpr std::uint64_t kMiB = 1U << 20;
  if (bytes < kMiB && bytes % kKiB == 0 && bytes > 0) return fmt::format("{} KiB", bytes / kKiB);
  if (bytes < kMiB) return fmt::format("{} bytes", bytes);
  if (bytes % kMiB == 0) return fmt::format("{} MiB", bytes / kMiB);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / static_cast<double>(kMiB));
}

std::string FormatTime(std::uint64_t millis) {
  return FormatDuration(Millis(static_cast<Millis::rep>(millis)));
}

std::string FormatNumber(std::uint64_t number) { return std::to_string(number); }

/// E.g. "memory limit of 64 MiB reached (used 65.0 MiB); raise it with -m/--memory".
std::string DescribeLimit(const Termination& termination, std::string_view noun,
                          std::string_view flag, std::string (*format)(std::uint64_t)) {
  std::string text = fmt::format("{} limit ", noun);
  if (termination.limit) text += fmt::format("of {} ", format(*termination.limit));
  text += "reached";
  if (termination.observed) text += fmt::format(" (used {})", format(*termination.observed));
  return text + fmt::format("; raise it with {}", flag);
}

std::string DescribeTimeout(const Termination& termination, Millis duration) {
  const std::string limit = FormatTime(termination.limit.value_or(0));
  return fmt::format(
      "killed after {}: the wall-clock limit of {} was reached; raise --timeout to allow more",
      FormatDuration(duration), limit);
}

std::string ExplainExec(const ExecResult& result, std::string_view program) {
  const int sys_errno = result.termination.sys_errno.value_or(0);
  if (ForResult(result, 0) == ExitCode::kNotFound) {
    return program.contains('/') ? "no such file inside the sandbox, which sees the workspace and "
                                   "the system's programs only; bring it in with --copy"
                                 : "not found in PATH";
  }
  switch (sys_errno) {
    case ENOENT:
      return "the interpreter that it names is missing inside the sandbox";
    case EACCES:
      return "it is not an executable file; a program needs its x bit (chmod +x)";
    case ENOEXEC:
      return "it is no program for this machine; a script needs a first line such as #!/bin/sh";
    case E2BIG:
      return "its arguments and environment are too long; write them to a file";
    default:
      return ::strerrordesc_np(sys_errno) != nullptr ? ::strerrordesc_np(sys_errno) : "refused";
  }
}

std::string DescribeStartupFailure(const ExecResult& result, std::string_view program) {
  const int sys_errno = result.termination.sys_errno.value_or(0);
  if (result.termination.stage != "exec") {
    return fmt::format("cannot start {}: the step '{}' failed: {}", program,
                       result.termination.stage, NameErrno(sys_errno));
  }
  const char* name = ::strerrorname_np(sys_errno);
  return fmt::format("cannot start {}: {} ({})", program, ExplainExec(result, program),
                     name != nullptr ? name : "unknown error");
}

std::string DescribeSignal(int signal) {
  // What a shell leaves unsaid: both are an everyday end, of a pipeline and of a ^C.
  if (signal == SIGPIPE || signal == SIGINT) return {};
  return fmt::format("the program was ended by signal {} ({})", signal, NameSignal(signal));
}

}  // namespace

Outcome DescribeOutcome(const ExecResult& result, std::string_view program, int stop_signal) {
  const Termination& termination = result.termination;
  switch (termination.cause) {
    case Cause::kExited:
      return {};
    case Cause::kSignaled:
      return {.text = DescribeSignal(termination.signal.value_or(0))};
    case Cause::kWallTimeout:
      return {.text = DescribeTimeout(termination, result.duration)};
    case Cause::kCpuTime:
      return {.text = DescribeLimit(termination, "CPU time", "--cpu-time", FormatTime)};
    case Cause::kMemory:
      return {.text = DescribeLimit(termination, "memory", "-m/--memory", FormatSize)};
    case Cause::kDisk:
      return {.text = DescribeLimit(termination, "disk", "--disk", FormatSize)};
    case Cause::kPids:
      return {.text = DescribeLimit(termination, "process", "--pids-limit", FormatNumber)};
    case Cause::kCancelled:
      return {.text = stop_signal != 0 ? "cancelled by " + NameSignal(stop_signal) : "cancelled"};
    case Cause::kStartupFailed:
      return {.text = DescribeStartupFailure(result, program), .is_failure = true};
    case Cause::kBackendLost:
      return {.text =
                  "the sandbox was lost before the program ended: its init process or the "
                  "launcher has died; run it again",
              .is_failure = true};
    case Cause::kInternal:
      return {.text = fmt::format("the engine ended the program: the step '{}' failed: {}",
                                  termination.stage, NameErrno(termination.sys_errno.value_or(0))),
              .is_failure = true};
  }
  return {};
}

std::string DescribeRefusals(const ExecResult& result) {
  const Termination& termination = result.termination;
  if (result.status != Status::kFailed || termination.cause == Cause::kPids) return {};
  const auto refused = std::ranges::find(termination.evidence, "pids_refused",
                                         [](const auto& entry) { return entry.first; });
  if (refused == termination.evidence.end() || refused->second <= 0) return {};
  return fmt::format(
      "the process limit refused {} new {}, which may be why it failed; raise it "
      "with --pids-limit",
      refused->second, refused->second == 1 ? "process" : "processes");
}

}  // namespace palmshed::cli
