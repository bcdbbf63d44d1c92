// What came of an execution. Mirrors spec/schemas/exec-result.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palmshed/export.h"
#include "palmshed/options.h"
#include "palmshed/units.h"

namespace palmshed {
inline namespace v1 {

/// State of an execution. Every state but kRunning is final.
enum class Status : std::uint8_t {
  kRunning,    ///< Not ended yet.
  kCompleted,  ///< Exited with 0.
  kFailed,     ///< Exited otherwise, was killed by a signal or a limit, or could not be started.
  kCancelled,  ///< Ended by Cancel, or by the end of its sandbox.
  kTimedOut,   ///< Ended by the wall-clock limit.
};

/// Why an execution ended, as read from the kernel.
enum class Cause : std::uint8_t {
  kExited,         ///< The program ended itself.
  kSignaled,       ///< A signal that the engine did not send.
  kWallTimeout,    ///< The wall-clock limit.
  kCpuTime,        ///< The CPU time limit.
  kMemory,         ///< The memory limit.
  kDisk,           ///< The disk quota.
  kPids,           ///< The limit on processes, where it ended the program.
  kCancelled,      ///< Cancel, or the end of the sandbox.
  kStartupFailed,  ///< The program could not be started; see `stage` and `sys_errno`.
  kBackendLost,    ///< The engine, its launcher or the sandbox went away.
  kInternal,       ///< A fault of the engine.
};

/// The specification's spelling, e.g. "timedout".
PALMSHED_EXPORT std::string_view ToString(Status status);
/// The specification's spelling, e.g. "wall_timeout".
PALMSHED_EXPORT std::string_view ToString(Cause cause);

/// Why and how an execution ended.
struct Termination {
  Cause cause{};                            ///< The reason that decided.
  std::optional<std::uint64_t> limit{};     ///< The limit that was hit: ms, bytes or processes.
  std::optional<std::uint64_t> observed{};  ///< What was measured against it, in the same unit.
  std::optional<int> signal{};              ///< The signal that ended the program.
  std::string stage{};                      ///< startup_failed, internal: the step, e.g. "exec".
  std::optional<int> sys_errno{};           ///< startup_failed, internal: the kernel's errno.
  /// Kernel facts behind the cause, e.g. {"exit_code", 143}.
  std::vector<std::pair<std::string, std::int64_t>> evidence{};
};

/// One output stream: the last bytes of it, up to the retention limit.
struct Captured {
  std::string bytes{};      ///< What was kept: the tail of the stream.
  std::uint64_t total = 0;  ///< How many bytes the program wrote.
  bool truncated = false;   ///< True when `bytes` is not all of it.

  /// The kept bytes as text, headed by a line that says what is missing when truncated.
  PALMSHED_EXPORT std::string Text() const;
};

/// A step of something that took time. Of steps in a row each begins where the one before it ends.
struct StepTime {
  std::string step{};                    ///< E.g. "run"; what cannot be told apart: "exec+run".
  std::chrono::microseconds duration{};  ///< On CLOCK_MONOTONIC.
};

/// The whole outcome. It exists for every ended execution, limit kills included.
struct ExecResult {
  std::string id{};                  ///< `exec_...`
  Status status{};                   ///< Never kRunning.
  int exit_code = -1;                ///< 0-255, 128 + n for signal n, -1 when the engine ended it.
  Termination termination{};         ///< Why it ended.
  Captured out{};                    ///< Standard output.
  Captured err{};                    ///< Standard error.
  Millis duration{};                 ///< On CLOCK_MONOTONIC.
  std::optional<Millis> cpu_time{};  ///< User and system time; absent when unknown.
  std::optional<Bytes> peak_memory{};                   ///< A lower bound; absent when unknown.
  std::string backend{};                                ///< Name of the backend.
  std::chrono::system_clock::time_point started_at{};   ///< Wall clock.
  std::chrono::system_clock::time_point finished_at{};  ///< Wall clock.
  std::vector<std::string> weaker{};  ///< Controls that `degraded` allowed to be weaker.
  std::vector<Mount> mounts{};        ///< What of the host its sandbox shows.
  std::vector<StepTime> timings{};    ///< From Start to the end, where ExecOptions ask for it.

  /// True for kCompleted, which is an exit code of 0.
  bool ok() const { return status == Status::kCompleted; }
  /// True when the wall-clock limit ended it.
  bool timed_out() const { return status == Status::kTimedOut; }
  /// Empty, or the error code that the termination stands for, e.g. "ERR_OOM_EXCEEDED".
  PALMSHED_EXPORT std::string_view error_code() const;
};

/// What is known of an execution beside its output; complete once it has ended.
struct ExecMetadata {
  std::string id{};                                    ///< `exec_...`
  std::string backend{};                               ///< Name of the backend.
  std::string spec_version{};                          ///< Version of the specification.
  std::chrono::system_clock::time_point started_at{};  ///< Wall clock.
  std::optional<std::chrono::system_clock::time_point> finished_at{};  ///< Absent while running.
  Millis duration{};                                                   ///< Live while running.
  int exit_code = -1;                                                  ///< -1 while running.
  bool timed_out = false;              ///< The wall-clock limit ended it.
  std::optional<Millis> cpu_time{};    ///< Absent when unknown.
  std::optional<Bytes> peak_memory{};  ///< Absent when unknown.
  std::optional<int> signal{};         ///< Signal that ended the program.
  std::vector<StepTime> timings{};     ///< As of the result.
};

/// How long the steps of a sandbox's life took that are no execution's.
struct SandboxTimings {
  std::vector<StepTime> create{};   ///< From Engine::CreateSandbox to its return.
  std::vector<StepTime> destroy{};  ///< From Sandbox::Destroy to its return; empty before.
};

}  // namespace v1
}  // namespace palmshed
