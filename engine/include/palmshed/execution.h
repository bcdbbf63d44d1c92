// A command that runs, or ran, in a sandbox.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "palmshed/error.h"
#include "palmshed/export.h"
#include "palmshed/options.h"
#include "palmshed/result.h"
#include "palmshed/units.h"

namespace palmshed {

namespace run {
class ExecutionState;
}

inline namespace v1 {

/// A cheap handle on an execution, copyable and usable from any thread. Dropping every handle ends
/// nothing. When the engine or the sandbox goes, a running execution ends as cancelled and handles
/// keep answering with its result.
class PALMSHED_EXPORT Execution {
 public:
  /// Made by Sandbox::Start.
  explicit Execution(std::shared_ptr<run::ExecutionState> state);

  /// `exec_` and lower-case hex digits.
  std::string_view id() const;
  /// `sandbox://execution/<id>`
  std::string uri() const;
  /// The state at this moment.
  Status status() const;
  /// -1 while running.
  int exit_code() const;
  /// Live while running.
  Millis duration() const;
  /// True once the wall-clock limit has ended it.
  bool timed_out() const;
  /// What is known at this moment.
  ExecMetadata metadata() const;
  /// The tail of standard output so far.
  Captured out() const;
  /// The tail of standard error so far.
  Captured err() const;
  /// The tails of both streams so far: standard output, then standard error.
  std::string logs() const;

  /// Waits for the end and returns the result. A stop request cancels the execution; the result
  /// still comes. May be called again and by many threads. Errors: CONFLICT in a callback.
  Result<ExecResult> Wait(std::stop_token stop = {}) const;
  /// The result, or nullopt when it is still running after `limit`.
  std::optional<ExecResult> WaitFor(Millis limit) const;
  /// The result if it has ended.
  std::optional<ExecResult> result() const;
  /// A descriptor that turns readable when the execution has ended: for poll, libuv, Asio, Qt.
  /// Borrowed: valid while a handle exists. -1 when no descriptor could be had.
  int ready_fd() const;

  /// Copies output from byte `cursor` of a stream into `into` and returns how many bytes; 0 at the
  /// end of the stream. Waits for output up to `wait` (absent: for ever), then answers OVERLOADED.
  /// INVALID_OPTIONS when the bytes at `cursor` are no longer kept. The stream of an execution that
  /// has detached processes ends with the last of them.
  Result<std::size_t> Read(Stream stream, std::uint64_t cursor, std::span<std::byte> into,
                           std::optional<Millis> wait = {}) const;
  /// Waits up to `limit` until a stream has `text` at or after byte `cursor`, and returns the
  /// position right after it: the cursor for what comes next. The text is found wherever the
  /// program's writes divide it.
  /// Errors: CONFLICT when the stream has ended without it, on a stop request, and in a callback;
  /// OVERLOADED after `limit`; INVALID_OPTIONS for a text that is empty or over 64 KiB, and when
  /// bytes that are still to be looked at are no longer kept (ExecOptions::max_output).
  Result<std::uint64_t> WaitForOutput(Stream stream, std::string_view text, Millis limit,
                                      std::uint64_t cursor = 0, std::stop_token stop = {}) const;
  /// As Sandbox::WaitForPort, of the sandbox that this runs in. CONFLICT when this execution has
  /// ended, whoever listens.
  Result<void> WaitForPort(std::uint16_t port, Millis limit, std::stop_token stop = {}) const;
  /// Queues bytes for the program's standard input (ExecOptions::stdin_pipe); never blocks. To a
  /// terminal it types them: byte 3 interrupts, and a line holds 4095 bytes unless the program has
  /// switched lines off.
  /// OVERLOADED when more than 16 MiB are queued; CONFLICT when there is no pipe or it is closed.
  Result<void> Write(std::span<const std::byte> bytes);
  /// Ends standard input after what is queued. Idempotent. A terminal has no end: there the
  /// end-of-file character is typed, which a program sees once.
  Result<void> CloseStdin();
  /// Sends a signal to the main process. CONFLICT when it has ended.
  Result<void> Signal(int signal);
  /// Changes the terminal's size, soon after this returns and before what Write queues later; the
  /// foreground process group gets SIGWINCH. INVALID_OPTIONS without a row or column; CONFLICT
  /// without a terminal and when the execution has ended.
  Result<void> Resize(TerminalSize size);
  /// Ends it: SIGTERM to all of its processes, SIGKILL after one second. Idempotent; does not wait.
  Result<void> Cancel();

 private:
  std::shared_ptr<run::ExecutionState> state_;
};

}  // namespace v1
}  // namespace palmshed
