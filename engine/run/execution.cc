#include "run/execution.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
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
#include "palmshed/error.h"
#include "palmshed/options.h"
#include "palmshed/result.h"
#include "palmshed/units.h"
#include "palmshed/version.h"
#include "plan/plan.h"

namespace palmshed::run {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::array kStreams{Stream::kStdout, Stream::kStderr};
constexpr std::chrono::seconds kCancelGrace{1};
/// How far a callback may fall behind before the program is held up.
constexpr std::uint64_t kDeliveryWindow = 1U << 20;
/// Reads of one stream before the other and the timers get their turn.
constexpr int kReadsPerTurn = 8;

std::size_t Index(Stream stream) { return static_cast<std::size_t>(stream); }

Millis Since(SteadyClock::time_point start) {
  return std::chrono::duration_cast<Millis>(SteadyClock::now() - start);
}

/// What the program itself did, when something else decided the outcome.
void AddOwnEnd(const backends::ExecEnd& end, Termination& termination) {
  if (end.kind != backends::ExecEnd::Kind::kExited) return;
  if (WIFEXITED(end.wait_status)) {
    termination.evidence.emplace_back("exit_code", WEXITSTATUS(end.wait_status));
  } else {
    termination.evidence.emplace_back("signal", WTERMSIG(end.wait_status));
  }
}

void ConcludeExited(int wait_status, ExecResult& result) {
  if (WIFEXITED(wait_status)) {
    result.exit_code = WEXITSTATUS(wait_status);
    result.status = result.exit_code == 0 ? Status::kCompleted : Status::kFailed;
    result.termination.cause = Cause::kExited;
    return;
  }
  result.exit_code = 128 + WTERMSIG(wait_status);
  result.status = Status::kFailed;
  result.termination.cause = Cause::kSignaled;
  result.termination.signal = WTERMSIG(wait_status);
}

void ConcludeByItself(const backends::ExecEnd& end, ExecResult& result) {
  switch (end.kind) {
    case backends::ExecEnd::Kind::kExited:
      return ConcludeExited(end.wait_status, result);
    case backends::ExecEnd::Kind::kStartupFailed:
      result.status = Status::kFailed;
      result.termination.cause = Cause::kStartupFailed;
      result.termination.stage = end.stage;
      result.termination.sys_errno = end.sys_errno;
      if (end.file_exists) result.termination.evidence.emplace_back("file_exists", 1);
      return;
    case backends::ExecEnd::Kind::kLost:
      result.status = Status::kFailed;
      result.termination.cause = Cause::kBackendLost;
      return;
  }
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
      outputs_{Output(plan.max_output), Output(plan.max_output)} {
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

Result<void> ExecutionState::Launch(const plan::ExecPlan& plan, const ExecOptions& options) {
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
  pumps_[Index(Stream::kStdout)].fd = std::move(out.first);
  pumps_[Index(Stream::kStderr)].fd = std::move(err.first);

  const auto self = shared_from_this();
  if (on_output_) {
    deliverer_ = StartQuietThread("palmshed-out", [self] { self->Deliver(); });
    if (!deliverer_.joinable()) return std::unexpected(SysError("pthread_create", EAGAIN));
  }
  auto started = context_.sandbox->Start(
      plan, std::move(stdio), [self](const backends::ExecEnd& end) { self->OnEnded(end); });
  if (!started) {
    AbandonDelivery();
    return std::unexpected(std::move(started.error()));
  }
  {
    const std::lock_guard lock(mu_);
    sequence_ = *started;
  }
  context_.loop->Post([self] { self->Begin(); });
  return {};
}

void ExecutionState::AbandonDelivery() {
  const std::lock_guard lock(mu_);
  phase_ = Phase::kSettled;
  changed_.notify_all();
}

// ---- On the loop's thread.

void ExecutionState::Begin() {
  if (ended_) return;
  for (const Stream stream : kStreams) WatchPump(stream);
  input_.Flush(*context_.loop);
  if (timeout_ > Millis(0) && !timer_) {
    const auto left =
        std::max(std::chrono::nanoseconds(0), started_ + Bounded(timeout_) - SteadyClock::now());
    timer_ = context_.loop->After(left, [this] { Expire(); });
  }
}

void ExecutionState::WatchPump(Stream stream) {
  Pump& pump = pumps_[Index(stream)];
  if (ended_ || !pump.fd.valid() || pump.watch) return;
  auto watch = context_.loop->WatchReadable(pump.fd.get(), [this, stream] { OnReadable(stream); });
  // Without a watch the output is still collected, when the execution ends.
  if (watch) pump.watch = *std::move(watch);
}

void ExecutionState::OnReadable(Stream stream) {
  for (int i = 0; i < kReadsPerTurn && PumpOnce(stream); ++i) {
    if (PauseIfLagging(stream)) return;
  }
}

bool ExecutionState::PumpOnce(Stream stream) {
  Pump& pump = pumps_[Index(stream)];
  if (!pump.fd.valid()) return false;
  Output& output = outputs_[Index(stream)];
  const auto space = output.Reserve();
  const auto size = sys::Read(pump.fd.get(), space);
  if (!size && size.error().sys_errno == EAGAIN) return false;
  if (!size || *size == 0) {
    pump.watch.reset();
    pump.fd.reset();
    return false;
  }
  output.Commit(*size);
  NoteActivity();
  // A short read has emptied the pipe; asking again would only cost a system call.
  return *size == space.size();
}

bool ExecutionState::PauseIfLagging(Stream stream) {
  const std::size_t i = Index(stream);
  const auto lagging = [&] {
    return on_output_ && outputs_[i].total() - delivered_[i].load() > kDeliveryWindow;
  };
  if (!lagging()) return false;
  paused_[i] = true;
  if (!lagging()) {  // Caught up meanwhile, perhaps without having seen the pause.
    paused_[i] = false;
    return false;
  }
  pumps_[i].watch.reset();
  return true;
}

void ExecutionState::Expire() {
  timer_.reset();
  // Also ends what was cancelled and outlived its grace.
  (void)Decide(Verdict::kTimeout);
  (void)Send(SIGKILL, true);
}

void ExecutionState::DrainWhatIsThere(Stream stream) {
  Pump& pump = pumps_[Index(stream)];
  pump.watch.reset();
  int there = 0;
  if (pump.fd.valid() && ::ioctl(pump.fd.get(), FIONREAD, &there) < 0) there = 0;
  const std::uint64_t goal = outputs_[Index(stream)].total() + static_cast<std::uint64_t>(there);
  while (outputs_[Index(stream)].total() < goal && pump.fd.valid()) (void)PumpOnce(stream);
  pump.fd.reset();
  outputs_[Index(stream)].Finish();
}

void ExecutionState::OnEnded(const backends::ExecEnd& end) {
  ended_ = true;
  timer_.reset();
  for (const Stream stream : kStreams) DrainWhatIsThere(stream);
  input_.Shut();
  Conclude(end);
  if (!on_output_) Settle();
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
      return std::unexpected(Error{
          .code = ErrorCode::kConflict, .message = "the execution has ended", .op = "signal"});
    }
  }
  return sandbox->Signal(sequence, signal, all);
}

void ExecutionState::Conclude(const backends::ExecEnd& end) {
  const std::lock_guard lock(mu_);
  result_.id = id_;
  result_.backend = context_.backend;
  result_.weaker = context_.weaker;
  result_.started_at = started_at_;
  result_.finished_at = std::chrono::system_clock::now();
  result_.duration = Since(started_);
  if (end.cpu_time) result_.cpu_time = std::chrono::duration_cast<Millis>(*end.cpu_time);
  result_.peak_memory = end.peak_memory;
  switch (verdict_) {
    case Verdict::kNone:
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
  }
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
  }
  if (settled) settled(result_);
  const std::lock_guard lock(mu_);
  phase_ = Phase::kSettled;
  if (ready_.valid()) SignalReady();
  changed_.notify_all();
}

void ExecutionState::SignalReady() {
  const std::uint64_t one = 1;
  (void)sys::Write(ready_.get(),
                   std::as_bytes(std::span(&one, 1)));  // Cannot fail: it never fills.
}

void ExecutionState::NoteActivity() {
  if (!on_output_) return;
  const std::lock_guard lock(mu_);
  ++activity_;
  changed_.notify_all();
}

// ---- On the delivering thread.

void ExecutionState::Deliver() {
  std::vector<std::byte> buffer(64U << 10);
  std::uint64_t seen = 0;
  while (true) {
    bool concluded = false;
    {
      std::unique_lock lock(mu_);
      changed_.wait(lock, [&] { return activity_ != seen || phase_ != Phase::kRunning; });
      if (phase_ == Phase::kSettled) return;  // It never started.
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
    const auto size = outputs_[i].Read(delivered_[i].load(), buffer, Millis(0));
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
  ExecMetadata metadata{.id = id_,
                        .backend = context_.backend,
                        .spec_version = kSpecVersion,
                        .started_at = started_at_,
                        .duration = phase_ == Phase::kRunning ? Since(started_) : result_.duration};
  if (phase_ != Phase::kSettled) return metadata;
  metadata.finished_at = result_.finished_at;
  metadata.exit_code = result_.exit_code;
  metadata.timed_out = result_.timed_out();
  metadata.cpu_time = result_.cpu_time;
  metadata.peak_memory = result_.peak_memory;
  metadata.signal = result_.termination.signal;
  return metadata;
}

const Output& ExecutionState::output(Stream stream) const { return outputs_[Index(stream)]; }

std::optional<ExecResult> ExecutionState::result() const {
  ExecResult result;
  {
    const std::lock_guard lock(mu_);
    if (phase_ != Phase::kSettled) return std::nullopt;
    result = result_;
  }
  result.out = outputs_[Index(Stream::kStdout)].Snapshot();
  result.err = outputs_[Index(Stream::kStderr)].Snapshot();
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
  FlushInput();
  return {};
}

Result<void> ExecutionState::CloseStdin() {
  PALMSHED_TRY_VOID(input_.Close());
  FlushInput();
  return {};
}

void ExecutionState::FlushInput() {
  const std::lock_guard lock(mu_);
  if (phase_ != Phase::kRunning) return;
  context_.loop->Post([self = shared_from_this()] {
    if (!self->ended_) self->input_.Flush(*self->context_.loop);
  });
}

Result<void> ExecutionState::Signal(int signal) { return Send(signal, false); }

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
