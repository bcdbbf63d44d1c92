#include "run/execution.h"

#include <fcntl.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "base/ids.h"
#include "base/loop.h"
#include "base/result.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "base/waiting.h"
#include "base/worker.h"
#include "model/metadata.h"
#include "palmshed/error.h"
#include "palmshed/options.h"
#include "palmshed/result.h"
#include "palmshed/units.h"
#include "palmshed/version.h"
#include "plan/plan.h"
#include "run/conclude.h"

namespace palmshed::run {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::array kStreams{Stream::kStdout, Stream::kStderr};
constexpr std::chrono::seconds kCancelGrace{1};
/// How far a callback may fall behind before the program is held up.
constexpr std::uint64_t kDeliveryWindow = 1U << 20;
/// How much a callback gets at once.
constexpr std::size_t kDeliveryBuffer = 64U << 10;
/// Reads of one stream before the other and the timers get their turn.
constexpr int kReadsPerTurn = 8;

std::size_t Index(Stream stream) { return static_cast<std::size_t>(stream); }

Millis Since(SteadyClock::time_point start) {
  return std::chrono::duration_cast<Millis>(SteadyClock::now() - start);
}

constexpr char kHasEnded[] = "the execution has ended";

Error Conflict(const char* op, const char* message) {
  return {.code = ErrorCode::kConflict, .message = message, .op = op};
}

}  // namespace

Result<std::shared_ptr<ExecutionState>> ExecutionState::Start(ExecutionContext context,
                                                              const plan::ExecPlan& plan,
                                                              const ExecOptions& options) {
  const std::shared_ptr<ExecutionState> state(
      new ExecutionState(std::move(context), plan, options));
  PALMSHED_TRY_VOID(state->Launch(plan, options));
  return state;
}

ExecutionState::ExecutionState(ExecutionContext context, const plan::ExecPlan& plan,
                               const ExecOptions& options)
    : id_(MakeId("exec_")),
      context_(std::move(context)),
      on_output_(options.on_output),
      started_(SteadyClock::now()),
      started_at_(std::chrono::system_clock::now()),
      timeout_(plan.timeout),
      has_terminal_(plan.terminal.has_value()),
      outputs_{Output(plan.max_output), Output(plan.max_output)},
      deliverable_{Output::kNobody, Output::kNobody},
      delivers_(on_output_ != nullptr) {
  if (!on_output_) return;
  for (Output& output : outputs_) output.Hold(0);
}

ExecutionState::~ExecutionState() {
  if (!deliverer_.joinable()) return;
  // The last reference may have been the delivering thread's own.
  if (deliverer_.get_id() == std::this_thread::get_id()) {
    deliverer_.detach();
  } else {
    deliverer_.join();
  }
}

Result<backends::Stdio> ExecutionState::OpenTerminal(const plan::ExecPlan& plan,
                                                     const ExecOptions& options) {
  PALMSHED_TRY(auto socket, terminal_.Ask());
  input_.OpenTerminal(options.stdin_bytes, plan.close_stdin);
  return backends::Stdio{.terminal = std::move(socket)};
}

Result<backends::Stdio> ExecutionState::OpenPipes(const plan::ExecPlan& plan,
                                                  const ExecOptions& options) {
  PALMSHED_TRY(auto out, sys::Pipe());
  PALMSHED_TRY(auto err, sys::Pipe());
  backends::Stdio stdio{.out = std::move(out.second), .err = std::move(err.second)};
  if (plan.stdin_kind == plan::StdinKind::kPipe) {
    PALMSHED_TRY(auto in, sys::Pipe());
    PALMSHED_TRY_VOID(sys::SetNonBlocking(in.second.get()));
    stdio.in = std::move(in.first);
    input_.Open(std::move(in.second), options.stdin_bytes, plan.close_stdin);
  }
  PALMSHED_TRY_VOID(sys::SetNonBlocking(out.first.get()));
  PALMSHED_TRY_VOID(sys::SetNonBlocking(err.first.get()));
  pumps_[Index(Stream::kStdout)].Open(std::move(out.first));
  pumps_[Index(Stream::kStderr)].Open(std::move(err.first));
  return stdio;
}

Result<void> ExecutionState::Launch(const plan::ExecPlan& plan, const ExecOptions& options) {
  PALMSHED_TRY(backends::Stdio stdio,
               plan.terminal ? OpenTerminal(plan, options) : OpenPipes(plan, options));
  const auto self = shared_from_this();
  context_.laps.End("open");
  PALMSHED_TRY(
      const std::uint32_t sequence,
      context_.sandbox->Start(plan, std::move(stdio),
                              [self](const backends::ExecEnd& end) { self->OnEnded(end); }));
  {
    const std::lock_guard lock(mu_);
    sequence_ = sequence;
  }
  context_.loop->Post([self] { self->Begin(); });
  return {};
}

// ---- On the loop's thread.

void ExecutionState::Begin() {
  if (ended_ || detached_) return;
  if (has_terminal_) AwaitTerminal();
  for (const Stream stream : kStreams) WatchPump(stream);
  WriteInput();
  if (timeout_ > Millis(0) && !timer_) {
    const auto left =
        std::max(std::chrono::nanoseconds(0), started_ + Bounded(timeout_) - SteadyClock::now());
    timer_ = context_.loop->After(left, [this] { Expire(); });
  }
}

void ExecutionState::AwaitTerminal() {
  auto watch = context_.loop->WatchReadable(terminal_.awaited(), [this] { OnTerminal(); });
  if (!watch) return OnOutputLost(watch.error());
  terminal_watch_ = *std::move(watch);
}

void ExecutionState::OnTerminal() {
  terminal_watch_.reset();  // Before what it watches is closed, and its number is somebody else's.
  auto ends = terminal_.Take();
  if (!ends) return OnOutputLost(ends.error());
  if (terminal_.awaited() >= 0 && !ended_) return AwaitTerminal();
  if (!*ends) return;
  pumps_[Index(Stream::kStdout)].Open(std::move((*ends)->out));
  WatchPump(Stream::kStdout);
  input_.Connect(std::move((*ends)->in));
  WriteInput();
}

void ExecutionState::WatchPump(Stream stream) {
  if (ended_) return;
  auto watched =
      pumps_[Index(stream)].Watch(*context_.loop, [this, stream] { OnReadable(stream); });
  if (!watched) OnOutputLost(watched.error());
}

void ExecutionState::OnReadable(Stream stream) {
  Output& output = outputs_[Index(stream)];
  for (int i = 0; i < kReadsPerTurn; ++i) {
    const std::uint64_t before = output.total();
    const auto more = pumps_[Index(stream)].ReadOnce(output);
    if (!more) return OnOutputLost(more.error());
    if (output.total() != before) NoteActivity();
    if (!*more || PauseIfLagging(stream)) return;
  }
}

void ExecutionState::WriteInput() {
  auto written = input_.Flush(*context_.loop, [this] { WriteInput(); });
  // A program that is given less would take it for all that there is.
  if (!written) OnFault({.stage = "write_input", .sys_errno = written.error().sys_errno});
}

bool ExecutionState::PauseIfLagging(Stream stream) {
  const std::size_t i = Index(stream);
  const auto lagging = [&] {
    return delivers_ && outputs_[i].total() - delivered_[i].load() > kDeliveryWindow;
  };
  if (!lagging()) return false;
  paused_[i] = true;
  if (!lagging()) {  // Caught up meanwhile, perhaps without having seen the pause.
    paused_[i] = false;
    return false;
  }
  pumps_[i].Pause();
  return true;
}

void ExecutionState::Expire() {
  timer_.reset();
  // Also ends what was cancelled and outlived its grace.
  (void)Decide(Verdict::kTimeout);
  (void)Send(SIGKILL, true);
}

void ExecutionState::OnFault(const Fault& fault) {
  if (Decide(Verdict::kFault)) fault_ = fault;
  if (!ended_) (void)Send(SIGKILL, true);  // Ended meanwhile: nothing to do.
}

/// A result without some of the output would look like that of a program which has written less.
void ExecutionState::OnOutputLost(const Error& why) {
  for (Pump& pump : pumps_) pump.Close();
  OnFault({.stage = "read_output", .sys_errno = why.sys_errno});
}

void ExecutionState::Drain(Stream stream) {
  Pump& pump = pumps_[Index(stream)];
  Output& output = outputs_[Index(stream)];
  pump.Pause();
  const std::uint64_t before = output.total();
  auto drained = has_terminal_ ? pump.DrainTerminal(output) : Result<void>();
  if (drained) drained = pump.Drain(output);
  if (output.total() != before) NoteActivity();
  if (!drained) OnOutputLost(drained.error());
}

void ExecutionState::DrainAll() {
  if (has_terminal_) OnTerminal();
  for (const Stream stream : kStreams) Drain(stream);
}

void ExecutionState::CloseAll() {
  for (const Stream stream : kStreams) {
    pumps_[Index(stream)].Close();
    outputs_[Index(stream)].Finish();
  }
  input_.Shut();
  terminal_watch_.reset();
  terminal_.Close();
}

void ExecutionState::OnEnded(const backends::ExecEnd& end) {
  if (end.detached) return OnDetached(end);
  if (detached_) return OnDetachedGone(end);
  ended_ = true;
  timer_.reset();
  DrainAll();
  CloseAll();
  context_.laps.Append(end.laps);
  context_.laps.End("drain");
  Conclude(end);
  if (!deliverer_.joinable()) Settle();
}

/// It ends here, but for its output: closing the pipes would end a server that writes a log.
void ExecutionState::OnDetached(const backends::ExecEnd& end) {
  DrainAll();
  // What was decided about it ends everything, and then it ends as any other.
  detached_ = Decide(Verdict::kDetached);
  for (const Stream stream : kStreams) WatchPump(stream);
  if (!detached_) return;
  timer_.reset();
  input_.Shut();
  for (const Stream stream : kStreams) {
    deliverable_[Index(stream)] = outputs_[Index(stream)].total();
  }
  {
    const std::lock_guard lock(mu_);
    captured_ = {outputs_[0].Snapshot(), outputs_[1].Snapshot()};
  }
  context_.laps.Append(end.laps);
  context_.laps.End("drain");
  Conclude(end);
  if (!deliverer_.joinable()) Settle();
}

void ExecutionState::OnDetachedGone(const backends::ExecEnd& end) {
  ended_ = true;
  DrainAll();
  CloseAll();
  ExecResult all;
  ConcludeByItself(end, all);
  if (context_.detached_gone) context_.detached_gone(id_, all.termination);
}

/// Most executions that somebody listens to say nothing: the thread comes with the first output.
/// Where there is none to be had, the loop's has to do.
void ExecutionState::NoteActivity() {
  if (!on_output_ || detached_) return;
  {
    const std::lock_guard lock(mu_);
    ++activity_;
    if (!deliverer_.joinable()) {
      deliverer_ =
          StartQuietThread("palmshed-out", [self = shared_from_this()] { self->Deliver(); });
    }
    changed_.notify_all();
    if (deliverer_.joinable()) return;
  }
  std::vector<std::byte> buffer(kDeliveryBuffer);
  for (const Stream stream : kStreams) (void)DeliverSome(stream, buffer);
}

// ---- Any thread.

bool ExecutionState::Decide(Verdict verdict) {
  const std::lock_guard lock(mu_);
  if (phase_ != Phase::kRunning || verdict_ != Verdict::kNone) return false;
  verdict_ = verdict;
  return true;
}

Result<void> ExecutionState::Send(int signal, bool all) {
  std::shared_ptr<backends::BackendSandbox> sandbox;
  std::uint32_t sequence = 0;
  {
    const std::lock_guard lock(mu_);
    sandbox = context_.sandbox;
    sequence = sequence_;
    if (phase_ != Phase::kRunning || sequence == 0) {
      return std::unexpected(Conflict("signal", kHasEnded));
    }
  }
  return sandbox->Signal(sequence, signal, all);
}

void ExecutionState::Conclude(const backends::ExecEnd& end) {
  const std::lock_guard lock(mu_);
  result_.id = id_;
  result_.backend = context_.backend;
  result_.weaker = context_.weaker;
  result_.mounts = context_.mounts;
  result_.started_at = started_at_;
  result_.finished_at = std::chrono::system_clock::now();
  result_.duration = Since(started_);
  if (end.cpu_time) result_.cpu_time = std::chrono::duration_cast<Millis>(*end.cpu_time);
  result_.peak_memory = end.peak_memory;
  switch (verdict_) {
    case Verdict::kNone:
    case Verdict::kDetached:
      ConcludeByItself(end, result_);
      break;
    case Verdict::kTimeout:
      result_.status = Status::kTimedOut;
      result_.termination = {.cause = Cause::kWallTimeout,
                             .limit = static_cast<std::uint64_t>(timeout_.count()),
                             .observed = static_cast<std::uint64_t>(result_.duration.count())};
      AddOwnEnd(end, result_.termination);
      break;
    case Verdict::kCancelled:
      result_.status = Status::kCancelled;
      result_.termination = {.cause = Cause::kCancelled};
      AddOwnEnd(end, result_.termination);
      break;
    case Verdict::kFault:
      result_.status = Status::kFailed;
      result_.termination = {
          .cause = Cause::kInternal, .stage = fault_.stage, .sys_errno = fault_.sys_errno};
      AddOwnEnd(end, result_.termination);
      break;
  }
  auto& evidence = result_.termination.evidence;
  evidence.insert(evidence.end(), end.evidence.begin(), end.evidence.end());
  context_.laps.End("conclude");
  phase_ = Phase::kConcluded;
  changed_.notify_all();
}

void ExecutionState::Settle() {
  std::shared_ptr<backends::BackendSandbox> sandbox;
  std::function<void(const ExecResult&)> settled;
  {
    const std::lock_guard lock(mu_);
    // Dropped outside the lock: this may be the last reference to either.
    sandbox = std::move(context_.sandbox);
    settled = std::exchange(context_.settled, nullptr);
    context_.laps.End("deliver");
  }
  if (settled) settled(result_);
  if (delivers_.exchange(false) && captured_) {
    // Of what is detached nothing is delivered any more, and nothing holds it up.
    for (Output& output : outputs_) output.Hold(Output::kNobody);
    context_.loop->Post([self = shared_from_this()] {
      for (const Stream stream : kStreams) self->WatchPump(stream);
    });
  }
  const std::lock_guard lock(mu_);
  context_.laps.End("settle");
  result_.timings = context_.laps.Steps();
  phase_ = Phase::kSettled;
  if (ready_.valid()) SignalReady();
  changed_.notify_all();
}

void ExecutionState::SignalReady() {
  const std::uint64_t one = 1;
  (void)sys::Write(ready_.get(),
                   std::as_bytes(std::span(&one, 1)));  // Cannot fail: it never fills.
}

// ---- On the delivering thread.

void ExecutionState::Deliver() {
  std::vector<std::byte> buffer(kDeliveryBuffer);
  std::uint64_t seen = 0;
  while (true) {
    bool concluded = false;
    {
      std::unique_lock lock(mu_);
      changed_.wait(lock, [&] { return activity_ != seen || phase_ != Phase::kRunning; });
      seen = activity_;
      concluded = phase_ == Phase::kConcluded;
    }
    bool progress = false;
    for (const Stream stream : kStreams) progress |= DeliverSome(stream, buffer);
    if (concluded && !progress) return Settle();
  }
}

bool ExecutionState::DeliverSome(Stream stream, std::span<std::byte> buffer) {
  const std::size_t i = Index(stream);
  bool progress = false;
  while (true) {
    const std::uint64_t left = deliverable_[i] - delivered_[i];
    if (left == 0) return progress;
    const auto part = buffer.first(std::min<std::uint64_t>(left, buffer.size()));
    const auto size = outputs_[i].Read(delivered_[i].load(), part, Millis(0));
    if (!size || *size == 0) return progress;
    progress = true;
    on_output_(stream, buffer.first(*size));
    delivered_[i] += *size;
    outputs_[i].Hold(delivered_[i].load());
    if (paused_[i].exchange(false)) {
      context_.loop->Post([self = shared_from_this(), stream] { self->WatchPump(stream); });
    }
  }
}

// ---- The handle's calls.

Status ExecutionState::status() const {
  const std::lock_guard lock(mu_);
  return phase_ == Phase::kSettled ? result_.status : Status::kRunning;
}

bool ExecutionState::settling() const {
  const std::lock_guard lock(mu_);
  return !context_.settled;
}

Millis ExecutionState::duration() const {
  const std::lock_guard lock(mu_);
  return phase_ == Phase::kRunning ? Since(started_) : result_.duration;
}

ExecMetadata ExecutionState::Metadata() const {
  const std::lock_guard lock(mu_);
  if (phase_ == Phase::kSettled) return model::MetadataOf(result_);
  return {.id = id_,
          .backend = context_.backend,
          .spec_version = kSpecVersion,
          .started_at = started_at_,
          .duration = phase_ == Phase::kRunning ? Since(started_) : result_.duration};
}

const Output& ExecutionState::output(Stream stream) const { return outputs_[Index(stream)]; }

std::optional<ExecResult> ExecutionState::result() const {
  ExecResult result;
  {
    const std::lock_guard lock(mu_);
    if (phase_ != Phase::kSettled) return std::nullopt;
    result = result_;
  }
  // Constant by now.
  result.out = captured_ ? (*captured_)[0] : outputs_[Index(Stream::kStdout)].Snapshot();
  result.err = captured_ ? (*captured_)[1] : outputs_[Index(Stream::kStderr)].Snapshot();
  return result;
}

bool ExecutionState::WaitSettled(std::optional<Millis> limit) const {
  std::unique_lock lock(mu_);
  const auto settled = [this] { return phase_ == Phase::kSettled; };
  if (limit) return changed_.wait_for(lock, Bounded(*limit), settled);
  changed_.wait(lock, settled);
  return true;
}

bool ExecutionState::OnOwnThread() const {
  const std::lock_guard lock(mu_);
  // The loop outlives every execution that has not settled, and only those.
  if (phase_ == Phase::kSettled) return false;
  return context_.loop->InLoop() || deliverer_.get_id() == std::this_thread::get_id();
}

int ExecutionState::ready_fd() {
  const std::lock_guard lock(mu_);
  if (ready_.valid()) return ready_.get();
  auto fd = sys::Eventfd();
  if (!fd) return -1;
  ready_ = *std::move(fd);
  if (phase_ == Phase::kSettled) SignalReady();
  return ready_.get();
}

Result<void> ExecutionState::Write(std::span<const std::byte> bytes) {
  PALMSHED_TRY_VOID(input_.Queue(bytes));
  WriteInputSoon();
  return {};
}

Result<void> ExecutionState::CloseStdin() {
  PALMSHED_TRY_VOID(input_.Close());
  WriteInputSoon();
  return {};
}

void ExecutionState::WriteInputSoon() {
  const std::lock_guard lock(mu_);
  if (phase_ != Phase::kRunning) return;
  context_.loop->Post([self = shared_from_this()] {
    if (!self->ended_) self->WriteInput();
  });
}

Result<void> ExecutionState::Signal(int signal) { return Send(signal, false); }

Result<void> ExecutionState::Resize(TerminalSize size) {
  if (!has_terminal_) return std::unexpected(Conflict("resize", "the execution has no terminal"));
  const std::lock_guard lock(mu_);
  if (phase_ != Phase::kRunning) return std::unexpected(Conflict("resize", kHasEnded));
  context_.loop->Post([self = shared_from_this(), size] { self->terminal_.Resize(size); });
  return {};
}

void ExecutionState::Cancel() {
  if (!Decide(Verdict::kCancelled)) return;
  (void)Send(SIGTERM, true);  // Ended meanwhile: nothing to do.
  const std::lock_guard lock(mu_);
  if (phase_ != Phase::kRunning) return;
  context_.loop->Post([self = shared_from_this()] {
    if (self->ended_) return;
    self->timer_ = self->context_.loop->After(kCancelGrace, [raw = self.get()] { raw->Expire(); });
  });
}

void ExecutionState::MarkCancelled() { (void)Decide(Verdict::kCancelled); }

}  // namespace palmshed::run
