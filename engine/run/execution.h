// One execution from its start to its result.
//
// Theory of operation. Start() is called on the caller's thread, which also hands the program to
// the backend; everything after that happens on the engine's loop thread: reading the pipes, the
// deadline, and at last OnEnded(), which the backend calls when all processes are dead and reaped.
// OnEnded drains what is already in the pipes (it never waits for their end: a process elsewhere
// may hold one open), or in the terminal, which takes the place of all three and arrives when the
// program's child has opened it; and Settle() makes the one transition out of kRunning. What ended
// the execution is decided by whoever comes first: the deadline, a cancel, or the program itself
// (`verdict_`).
//
// With `on_output`, a thread of its own, which comes with the first output, delivers it and settles
// the execution when it has delivered everything, so that a slow callback holds up nobody else; the
// loop stops reading while it lags, which holds up the program in turn.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "backends/backend.h"
#include "base/laps.h"
#include "base/loop.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/options.h"
#include "palmshed/result.h"
#include "palmshed/units.h"
#include "plan/plan.h"
#include "run/input.h"
#include "run/output.h"
#include "run/pump.h"
#include "run/terminal.h"

namespace palmshed::run {

/// What an execution needs of its sandbox and engine.
struct ExecutionContext {
  Loop* loop;  ///< Alive as long as the execution runs.
  std::shared_ptr<backends::BackendSandbox> sandbox;
  std::string backend;
  std::vector<std::string> weaker{};
  std::vector<Mount> mounts{};
  Laps laps{false};  ///< From the caller's request on.
  /// Runs on the loop's thread, or on the delivering one, once the execution has settled.
  std::function<void(const ExecResult&)> settled{};
  /// Runs on the loop's thread once what it had detached is gone; why, as of a result.
  std::function<void(const std::string& id, const Termination&)> detached_gone{};
};

class ExecutionState : public std::enable_shared_from_this<ExecutionState> {
 public:
  /// Starts the program. The returned state settles exactly once.
  static Result<std::shared_ptr<ExecutionState>> Start(ExecutionContext context,
                                                       const plan::ExecPlan& plan,
                                                       const ExecOptions& options);
  ~ExecutionState();  ///< On any thread; everything has settled by then.
  ExecutionState(const ExecutionState&) = delete;
  ExecutionState& operator=(const ExecutionState&) = delete;

  const std::string& id() const { return id_; }
  Status status() const;
  /// True from just before `settled` is called, when status() still answers kRunning.
  bool settling() const;
  Millis duration() const;
  ExecMetadata Metadata() const;
  const Output& output(Stream stream) const;
  /// The result once settled.
  std::optional<ExecResult> result() const;
  /// True when settled within `limit` (absent: for ever).
  bool WaitSettled(std::optional<Millis> limit) const;
  bool OnOwnThread() const;
  /// As Execution::WaitForOutput and WaitForPort.
  Result<std::uint64_t> WaitForOutput(Stream stream, std::string_view text, Millis limit,
                                      std::uint64_t cursor, const std::stop_token& stop) const;
  Result<void> WaitForPort(std::uint16_t port, Millis limit, const std::stop_token& stop) const;
  int ready_fd();

  Result<void> Write(std::span<const std::byte> bytes);
  Result<void> CloseStdin();
  Result<void> Signal(int signal);
  Result<void> Resize(TerminalSize size);
  void Cancel();
  /// The sandbox is being destroyed: whatever ends the processes now is a cancellation.
  void MarkCancelled();

 private:
  /// kDetached: only what its main process has left is still there.
  enum class Verdict : std::uint8_t { kNone, kTimeout, kCancelled, kFault, kDetached };
  /// kConcluded: the outcome is known, output is still being delivered.
  enum class Phase : std::uint8_t { kRunning, kConcluded, kSettled };
  /// What the engine could not do; `stage` as of a Termination.
  struct Fault {
    const char* stage = "";
    int sys_errno = 0;
  };

  ExecutionState(ExecutionContext context, const plan::ExecPlan& plan, const ExecOptions& options);

  Result<void> Launch(const plan::ExecPlan& plan, const ExecOptions& options);
  Result<backends::Stdio> OpenPipes(const plan::ExecPlan& plan, const ExecOptions& options);
  Result<backends::Stdio> OpenTerminal(const plan::ExecPlan& plan, const ExecOptions& options);
  // On the loop's thread.
  void Begin();
  void AwaitTerminal();
  void OnTerminal();
  void WatchPump(Stream stream);
  void OnReadable(Stream stream);
  void WriteInput();
  void Drain(Stream stream);
  void DrainAll();
  void CloseAll();
  bool PauseIfLagging(Stream stream);
  void NoteActivity();
  void Expire();
  void OnFault(const Fault& fault);
  void OnOutputLost(const Error& why);
  void OnEnded(const backends::ExecEnd& end);
  void OnDetached(const backends::ExecEnd& end);
  void OnDetachedGone(const backends::ExecEnd& end);
  // Any thread.
  bool Decide(Verdict verdict);
  Result<void> Send(int signal, bool all);
  void WriteInputSoon();
  void SignalReady();
  void Conclude(const backends::ExecEnd& end);
  void Settle();
  // On the delivering thread.
  void Deliver();
  bool DeliverSome(Stream stream, std::span<std::byte> buffer);

  const std::string id_;
  ExecutionContext context_;
  const std::function<void(Stream, std::span<const std::byte>)> on_output_;
  const std::chrono::steady_clock::time_point started_;
  const std::chrono::system_clock::time_point started_at_;
  const Millis timeout_;
  const bool has_terminal_;
  std::array<Output, 2> outputs_;
  Input input_;

  // The loop's thread only.
  std::array<Pump, 2> pumps_;
  Terminal terminal_;
  std::unique_ptr<Loop::Watch> terminal_watch_;
  std::unique_ptr<Loop::Timer> timer_;
  bool ended_ = false;
  bool detached_ = false;
  Fault fault_;  ///< Behind Verdict::kFault.

  // Between the loop and the delivering thread.
  std::array<std::atomic<std::uint64_t>, 2> delivered_{};
  std::array<std::atomic<bool>, 2> paused_{};
  std::array<std::atomic<std::uint64_t>, 2> deliverable_;  ///< What comes later is not delivered.
  std::atomic<bool> delivers_ = false;                     ///< Until settled.
  std::thread deliverer_;  ///< Set on the loop's thread, under `mu_`.

  mutable std::mutex mu_;
  mutable std::condition_variable changed_;  ///< `phase_` or `activity_`.
  std::uint32_t sequence_ = 0;               ///< Of the backend; 0 until started.
  Verdict verdict_ = Verdict::kNone;
  Phase phase_ = Phase::kRunning;
  std::uint64_t activity_ = 0;  ///< Counts arrivals of output, for the delivering thread.
  ExecResult result_;           ///< Without the captured output; final once concluded.
  /// The output of an execution that has detached something, which may print more.
  std::optional<std::array<Captured, 2>> captured_;
  UniqueFd ready_;
};

}  // namespace palmshed::run
