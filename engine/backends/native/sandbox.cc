#include "backends/native/sandbox.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "backends/native/armed_children.h"
#include "backends/native/await_by_loop.h"
#include "backends/native/disk_enforcer.h"
#include "backends/native/enforcement.h"
#include "backends/native/enforcer.h"
#include "backends/native/exec_message.h"
#include "backends/native/helper_steps.h"
#include "backends/native/launcher.h"
#include "base/bytes.h"
#include "base/laps.h"
#include "base/result.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "child/step_names.h"
#include "child/wire.h"
#include "palmshed/error.h"
#include "palmshed/units.h"
#include "plan/plan.h"

namespace palmshed::backends::native {
namespace {

constexpr std::chrono::milliseconds kBeforeWatch{2};
/// Making a child takes a processor. When an execution has ended, whoever has been told goes first;
/// for whoever is busy it is made while a program runs, but not while it starts.
constexpr std::chrono::milliseconds kBeforePrepare{1};
constexpr std::chrono::microseconds kBeforePrepareBusy{200};
constexpr std::chrono::seconds kIdleAfter{8};

Error Dead() {
  return {.code = ErrorCode::kBackendLost,
          .message = "the sandbox's init process has died",
          .remedy = "create another sandbox"};
}

SharedSocket SocketIn(UniqueFd fd) { return std::make_shared<const UniqueFd>(std::move(fd)); }

Error ErrorOf(ErrorCode code, const child::InitReply& reply) {
  return StepError(code, reply.step, reply.sys_errno, reply.detail);
}

/// Why there is no descriptor with an answer. Those that this process has no room for are dropped.
Error NoDescriptor(ErrorCode code, const child::InitReply& reply) {
  return reply.sys_errno == 0 ? SysError("recvmsg", EMFILE) : ErrorOf(code, reply);
}

ExecEnd EndOf(const child::InitReply& reply) {
  using Kind = ExecEnd::Kind;
  ExecEnd end;
  if (reply.kind == child::EndKind::kStartupFailed) {
    end.kind = Kind::kStartupFailed;
    end.stage = child::StepName(reply.step);
    end.sys_errno = reply.sys_errno;
    end.file_exists = reply.step == child::Step::kExec && reply.detail == 1;
    return end;
  }
  end.kind = Kind::kExited;
  end.wait_status = reply.wait_status;
  end.killed_leftovers = reply.killed_leftovers != 0;
  end.cpu_time = std::chrono::nanoseconds(reply.cpu_ns);
  if (reply.max_rss_bytes != 0) end.peak_memory = Bytes{reply.max_rss_bytes};
  return end;
}

}  // namespace

NativeSandbox::NativeSandbox(Parts parts)
    : parts_(std::move(parts)),
      enforcement_({.worker = parts_.worker,
                    .bears = parts_.bears,
                    .sources = [this] { return FindEnforcers(); },
                    .ask = [this](ChildRole role) { return AskForChild(role); },
                    .dismiss = [this](std::uint32_t child) { DismissChild(child); }}) {
  if (parts_.disk) disk_ = MakeDiskLimit(*parts_.disk, [this] { return OpenWorkspace(); });
}

Result<std::unique_ptr<NativeSandbox>> NativeSandbox::Create(Parts parts, Laps& laps) {
  std::unique_ptr<NativeSandbox> sandbox(new NativeSandbox(std::move(parts)));
  if (auto ready = sandbox->AwaitReady(laps); !ready) {
    (void)sandbox->Destroy(laps);  // Nothing half-made stays.
    return std::unexpected(std::move(ready.error()));
  }
  sandbox->enforcement_.Prepare(sandbox->parts_.ceilings);
  laps.End("limits");
  return sandbox;
}

Result<void> NativeSandbox::AwaitReady(Laps& laps) {
  child::InitReply reply{};
  auto message =
      sys::ReceiveMessage(parts_.socket.get(), std::as_writable_bytes(std::span(&reply, 1)));
  if (!message || message->size != sizeof reply) return std::unexpected(Dead());
  if (reply.answer != child::InitAnswer::kReady) {
    return std::unexpected(
        StepError(ErrorCode::kUnsupported, reply.step, reply.sys_errno, reply.detail));
  }
  AddInitSteps(reply, laps);
  // Whatever ends this object waits for the loop.
  parts_.loop->Post([this] { Watch(); });
  return {};
}

NativeSandbox::~NativeSandbox() {
  Kill();
  // Once Destroy has told everybody, the loop may be gone before the last handle.
  if (!destroyed_) parts_.loop->Run([this] { OnDead(); });
  if (disk_.source) disk_.source->Close();
}

void NativeSandbox::Kill() {
  killed_ = true;
  (void)sys::PidfdSendSignal(parts_.pidfd.get(), SIGKILL);  // ESRCH: it is dead already.
}

Result<void> NativeSandbox::HandOver(Stdio& stdio) const {
  if (!parts_.owner) return {};
  // Else /dev/stdout cannot be opened again from inside.
  for (const UniqueFd* fd : {&stdio.in, &stdio.out, &stdio.err}) {
    if (fd->valid()) PALMSHED_TRY_VOID(sys::Fchown(fd->get(), *parts_.owner, *parts_.owner));
  }
  return {};
}

std::vector<std::shared_ptr<EnforcerSource>> NativeSandbox::FindEnforcers() {
  auto sources =
      parts_.enforcers({.home = &*parts_.home,
                        // A dead init has no number, and no execution either.
                        .init = sys::PidOf(parts_.pidfd.get()).value_or(0),
                        .open_inside = [this](child::Inside what) { return OpenInside(what); }});
  if (disk_.source) sources.push_back(disk_.source);
  return sources;
}

bool NativeSandbox::IsEnding() const {
  return killed_ || sys::WaitReadable(parts_.pidfd.get(), 0).value_or(true);
}

Result<void> NativeSandbox::TellInit(std::span<const std::byte> request) const {
  auto sent = sys::SendMessage(parts_.socket.get(), request);
  if (!sent && IsHangUp(sent.error())) return std::unexpected(Dead());
  return sent;
}

Result<std::uint32_t> NativeSandbox::AskForChild(ChildRole role) {
  child::ArmRequest request{.op = child::InitOp::kArm, .sequence = 0, .role = role};
  {
    const std::lock_guard lock(mu_);
    if (dead_) return std::unexpected(Dead());
    request.sequence = ++sequence_;
  }
  PALMSHED_TRY_VOID(TellInit(BytesOf(request)));
  return request.sequence;
}

void NativeSandbox::DismissChild(std::uint32_t child) const {
  const child::ArmRequest request{.op = child::InitOp::kDisarm, .sequence = child, .role = {}};
  (void)sys::SendMessage(parts_.socket.get(), BytesOf(request));  // Init is dead: so is the child.
}

Result<std::uint32_t> NativeSandbox::Start(const plan::ExecPlan& plan, Stdio stdio, Ended ended) {
  {
    const std::lock_guard lock(mu_);
    if (dead_) return std::unexpected(Dead());
    ++starting_;
  }
  auto started = StartCounted(plan, std::move(stdio), std::move(ended));
  const std::lock_guard lock(mu_);
  --starting_;
  if (starting_ > 0) return started;
  gone_.clear();
  none_starting_.notify_all();  // Under the lock: who waits may end this object next.
  return started;
}

Result<std::uint32_t> NativeSandbox::StartCounted(const plan::ExecPlan& plan, Stdio stdio,
                                                  Ended ended) {
  PALMSHED_TRY_VOID(HandOver(stdio));
  auto started = StartOn(plan, stdio, ended);
  // Another child, for as long as they die before they get it, within reason.
  for (std::size_t again = 0;
       !started && started.error().sys_errno == ESTALE && again < ArmedChildren::kMost; ++again) {
    started = StartOn(plan, stdio, ended);
  }
  // They all die with a sandbox that is being ended.
  if (!started && started.error().sys_errno == ESTALE && IsEnding()) {
    return std::unexpected(Dead());
  }
  if (started && plan.limits.any()) {
    // Destroy waits for this call, and then for the loop.
    parts_.loop->Post([this, execution = *started] { OnSent(execution); });
  }
  return started;
}

Result<std::uint32_t> NativeSandbox::StartOn(const plan::ExecPlan& plan, const Stdio& stdio,
                                             Ended& ended) {
  auto begun = enforcement_.Begin(plan.limits);
  if (!begun) {
    // Whatever is looked up in a sandbox that is being ended may be gone.
    return std::unexpected(IsEnding() ? Dead() : std::move(begun.error()));
  }
  EnforcedExecution limits = *std::move(begun);
  Laps laps(plan.timings);
  laps.End("limits");
  ExecOrder order{.armed = limits.child(), .carried = limits.carried()};
  const SharedSocket own = limits.socket();
  {
    std::unique_lock lock(mu_);
    if (dead_) return std::unexpected(Dead());
    // It was told before there was an execution to tell it of. Its socket is no witness: a process
    // that init has just made may hold a copy of the other end.
    if (gone_.contains(order.armed)) {
      lock.unlock();
      enforcement_.Abandon(std::move(limits));
      return std::unexpected(SysError("send", ESTALE));
    }
    order.sequence = ++sequence_;
    running_[order.sequence] = {
        .ended = std::move(ended), .limits = std::move(limits), .laps = std::move(laps)};
  }
  auto sent = SendExec(own ? own->get() : parts_.socket.get(), order, plan, stdio);
  if (sent) return order.sequence;
  std::unique_lock lock(mu_);
  auto node = running_.extract(order.sequence);
  lock.unlock();
  // Init, or the child, died while this was sent, and `ended` has been told already.
  if (node.empty()) return order.sequence;
  ended = std::move(node.mapped().ended);
  enforcement_.Abandon(std::move(node.mapped().limits));
  if (!IsHangUp(sent.error())) return std::unexpected(std::move(sent.error()));
  return std::unexpected(own ? SysError("send", ESTALE) : Dead());
}

Result<void> NativeSandbox::Signal(std::uint32_t execution, int signal, bool all) {
  child::KillRequest request{.op = child::InitOp::kKill,
                             .sequence = execution,
                             .signal = signal,
                             .all = all ? 1U : 0U,
                             .armed = 0};
  {
    const std::lock_guard lock(mu_);
    const auto found = running_.find(execution);
    if (found != running_.end()) {
      request.armed = found->second.limits.child();
      found->second.killed = found->second.killed || signal == SIGKILL;
    }
  }
  auto told = TellInit(BytesOf(request));
  // What has to end must not go on for want of a buffer: it takes its sandbox along.
  if (!told && signal == SIGKILL) Kill();
  return told;
}

Result<UniqueFd> NativeSandbox::OpenInside(child::Inside what) {
  std::future<Result<UniqueFd>> reply;
  child::OpenRequest request{.op = child::InitOp::kOpen, .sequence = 0, .what = what};
  {
    const std::lock_guard lock(mu_);
    if (dead_) return std::unexpected(Dead());
    request.sequence = ++sequence_;
    reply = opening_[request.sequence].get_future();
  }
  auto told = TellInit(BytesOf(request));
  if (told) return reply.get();
  const std::lock_guard lock(mu_);
  opening_.erase(request.sequence);
  return std::unexpected(std::move(told.error()));
}

Result<std::vector<UniqueFd>> NativeSandbox::OpenTcpTables() {
  if (!parts_.no_tcp_tables.empty()) {
    return std::unexpected(Unsupported("waiting for a port", parts_.no_tcp_tables, ""));
  }
  std::vector<UniqueFd> tables;
  for (const auto what : {child::Inside::kTcpSockets, child::Inside::kTcp6Sockets}) {
    auto table = OpenInside(what);
    if (table) {
      tables.push_back(*std::move(table));
    } else if (table.error().sys_errno != ENOENT) {  // A kernel may have no IPv6.
      return std::unexpected(std::move(table.error()));
    }
  }
  return tables;
}

Result<void> NativeSandbox::Destroy(Laps& laps) {
  bool idle = false;
  {
    const std::lock_guard lock(mu_);
    if (std::exchange(destroyed_, true)) return {};
    idle =
        running_.empty() && starting_ == 0 && !dead_ && !parts_.supervised && !enforcement_.used();
  }
  Kill();
  laps.End("kill");
  // With no execution there was nobody but init, which writes no files: they go while it dies.
  Result<void> removed;
  if (idle) removed = RemoveHome(laps);
  auto dead = AwaitDeath();
  laps.End("death");
  // However that went: nothing that calls this object back may outlive it.
  parts_.loop->Run([this] { OnDead(); });
  AwaitStarts();
  enforcement_.AwaitIdle();
  if (disk_.source) disk_.source->Close();
  laps.End("release");
  if (!idle) removed = RemoveHome(laps);
  return dead ? removed : dead;
}

Result<void> NativeSandbox::RemoveHome(Laps& laps) {
  auto removed = parts_.home->Remove();
  laps.End("directory");
  return removed;
}

/// An execution that has just been sent may be over before its Start returns. Init is dead, so
/// there is nothing that a Start could wait for.
void NativeSandbox::AwaitStarts() {
  {
    std::unique_lock lock(mu_);
    none_starting_.wait(lock, [this] { return starting_ == 0; });
  }
  parts_.loop->Run([] {});  // What they have posted has run when this has.
}

Result<void> NativeSandbox::AwaitDeath() {
  // Init is PID 1 of its namespace: its pidfd turns readable when every process in it is dead and
  // reaped (pid_namespaces(7)).
  Result<void> dead;
  if (!sys::WaitReadable(parts_.pidfd.get(), -1)) {
    dead = AwaitReadableByLoop(*parts_.loop, parts_.pidfd.get());
  }
  // Elsewhere its guard holds on to the socket until that is so (child/host_pids.h).
  if (dead && parts_.supervised && !sys::WaitHangup(parts_.socket.get(), -1)) {
    parts_.loop->Run([this] { watch_.reset(); });
    dead = AwaitEndByLoop(*parts_.loop, parts_.socket.get());
  }
  if (!parts_.launcher) sys::Reap(parts_.pidfd.get());
  return dead;
}

// ---- On the loop's thread.

void NativeSandbox::Watch() {
  auto watch = parts_.loop->WatchReadable(parts_.socket.get(), [this] { OnReadable(); });
  if (watch) {
    watch_ = *std::move(watch);
    return;
  }
  Kill();  // No answer of it would be heard.
  OnDead();
  if (parts_.lost) parts_.lost();
}

void NativeSandbox::OnReadable() {
  while (watch_) {
    child::InitReply reply{};
    auto message = sys::ReceiveMessage(parts_.socket.get(),
                                       std::as_writable_bytes(std::span(&reply, 1)), MSG_DONTWAIT);
    if (!message && message.error().sys_errno == EAGAIN) return;
    if (!message || message->size != sizeof reply) {
      OnDead();
      if (parts_.lost) parts_.lost();
      return;
    }
    OnReply(reply, std::move(message->fds));
  }
}

/// What it has left running is held to its limits, and a limit that it has met ends all of it.
void NativeSandbox::OnDetached(const child::InitReply& reply) {
  ExecEnd end = EndOf(reply);
  end.detached = true;
  Ended ended;
  {
    const std::lock_guard lock(mu_);
    const auto found = running_.find(reply.sequence);
    if (found == running_.end()) return;
    end.laps = found->second.laps;
    AddExecSteps(reply, end.laps);
    found->second.limits.AddSoFar(end);
    end.laps.End("account");
    if (!end.hit && !found->second.limits.killed()) ended = found->second.ended;
  }
  if (!ended) return OnExceeded(reply.sequence);
  ended(end);
}

void NativeSandbox::OnEnded(const child::InitReply& reply, std::vector<UniqueFd> fds) {
  std::unique_lock lock(mu_);
  auto node = running_.extract(reply.sequence);
  lock.unlock();
  if (node.empty()) return;
  auto& ending = ending_[reply.sequence];
  ending = {.running = std::move(node.mapped()),
            .end = EndOf(reply),
            .child_waits = reply.waits_again != 0};
  ending.end.laps = std::move(ending.running.laps);
  AddExecSteps(reply, ending.end.laps);
  if (!fds.empty()) ending.running.limits.SetSocket(SocketIn(std::move(fds.front())));
  // It may be gone when this returns.
  ending.running.limits.Conclude(ending.end.wait_status, *parts_.loop,
                                 [this, execution = reply.sequence] { OnConcluded(execution); });
}

void NativeSandbox::OnConcluded(std::uint32_t execution) {
  auto node = ending_.extract(execution);
  if (node.empty()) return;  // Init died meanwhile.
  auto& [running, end, child_waits] = node.mapped();
  running.limits.Finish(end);
  end.laps.End("account");
  const bool limited = running.limits.limited();
  const bool had_child = running.limits.child() != 0;
  // First: whoever is told may run the next at once.
  const bool more = enforcement_.Return(running.limits, child_waits);
  running.ended(end);
  // What bears executions without limits is made once, also in between two that follow closely.
  if (more && (limited || !prepare_)) PrepareAfter(kBeforePrepare);
  if (had_child) RestLater();
}

void NativeSandbox::PrepareAfter(std::chrono::nanoseconds delay) {
  prepare_ = parts_.loop->After(delay, [this] {
    prepare_.reset();
    enforcement_.PrepareNext();
  });
}

/// Whoever is not in the habit of running something all the time keeps little open. The timer is
/// not begun anew each time, that would cost every execution a system call.
void NativeSandbox::RestLater() {
  rest_due_ = std::chrono::steady_clock::now() + kIdleAfter;
  if (!rest_) rest_ = parts_.loop->After(kIdleAfter, [this] { RestIfDue(); });
}

void NativeSandbox::RestIfDue() {
  const auto left = rest_due_ - std::chrono::steady_clock::now();
  if (left > std::chrono::nanoseconds(0)) {
    rest_ = parts_.loop->After(left, [this] { RestIfDue(); });
    return;
  }
  rest_.reset();
  enforcement_.Rest();
}

void NativeSandbox::OnSent(std::uint32_t execution) {
  {
    const std::lock_guard lock(mu_);
    if (dead_) return;  // Nobody would end a timer that is begun now.
  }
  if (enforcement_.busy()) PrepareAfter(kBeforePrepareBusy);
  WatchLimitsLater(execution);
}

/// Not while the program starts: that would be in its way, and most are over before there is
/// anything to see. What the kernel holds it holds all the time, and what has happened stays
/// visible.
void NativeSandbox::WatchLimitsLater(std::uint32_t execution) {
  const std::lock_guard lock(mu_);
  const auto found = running_.find(execution);
  if (found == running_.end()) return;
  found->second.watch_later =
      parts_.loop->After(kBeforeWatch, [this, execution] { WatchLimits(execution); });
}

void NativeSandbox::WatchLimits(std::uint32_t execution) {
  const std::lock_guard lock(mu_);
  const auto found = running_.find(execution);
  if (found == running_.end()) return;
  found->second.limits.Watch(*parts_.loop, [this, execution] { OnExceeded(execution); });
}

void NativeSandbox::OnExceeded(std::uint32_t execution) {
  {
    const std::lock_guard lock(mu_);
    const auto found = running_.find(execution);
    if (found == running_.end()) return;
    found->second.limits.Kill();
  }
  (void)Signal(execution, SIGKILL, true);
}

void NativeSandbox::OnReply(const child::InitReply& reply, std::vector<UniqueFd> fds) {
  if (reply.answer == child::InitAnswer::kEnded) {
    return reply.left_running != 0 ? OnDetached(reply) : OnEnded(reply, std::move(fds));
  }
  if (reply.answer == child::InitAnswer::kArmed) return OnArmed(reply, std::move(fds));
  if (reply.answer == child::InitAnswer::kDisarmed) return OnDisarmed(reply.sequence);
  const std::lock_guard lock(mu_);
  auto node = opening_.extract(reply.sequence);
  if (node.empty()) return;
  if (!fds.empty()) {
    node.mapped().set_value(std::move(fds.front()));
  } else {
    node.mapped().set_value(std::unexpected(NoDescriptor(ErrorCode::kFsError, reply)));
  }
}

void NativeSandbox::OnArmed(const child::InitReply& reply, std::vector<UniqueFd> fds) {
  if (fds.empty()) {
    const Error why = NoDescriptor(ErrorCode::kUnsupported, reply);
    enforcement_.OnArmed(reply.sequence, std::unexpected(why));
  } else {
    enforcement_.OnArmed(
        reply.sequence,
        ArmedChildren::Armed{.pidfd = std::move(fds.front()),
                             .socket = fds.size() > 1 ? SocketIn(std::move(fds[1])) : nullptr});
  }
  RestLater();
}

/// What it was given and has not been answered was never started.
void NativeSandbox::OnDisarmed(std::uint32_t child) {
  enforcement_.OnGone(child);
  child::InitReply reply{};
  {
    const std::lock_guard lock(mu_);
    const auto given = std::ranges::find_if(
        running_, [&](const auto& running) { return running.second.limits.child() == child; });
    if (given == running_.end()) {
      if (starting_ > 0) gone_.insert(child);
      return;
    }
    reply.sequence = given->first;
    reply.kind = given->second.killed ? child::EndKind::kExited : child::EndKind::kStartupFailed;
  }
  reply.answer = child::InitAnswer::kEnded;
  reply.step = child::Step::kArm;
  reply.sys_errno = ESRCH;
  reply.wait_status = SIGKILL;
  OnEnded(reply, {});
}

void NativeSandbox::OnDead() {
  watch_.reset();
  prepare_.reset();
  rest_.reset();
  enforcement_.OnDead(Dead());
  std::map<std::uint32_t, Running> running;
  std::map<std::uint32_t, std::promise<Result<UniqueFd>>> opening;
  {
    const std::lock_guard lock(mu_);
    dead_ = true;
    running.swap(running_);
    opening.swap(opening_);
  }
  for (auto& [sequence, ending] : std::exchange(ending_, {})) {
    ending.running.limits.Finish(ending.end);
    ending.end.laps.End("account");
    ending.running.ended(ending.end);
  }
  for (auto& [sequence, execution] : running) {
    ExecEnd end{.kind = ExecEnd::Kind::kLost};
    execution.limits.Finish(end);
    end.laps = std::move(execution.laps);
    end.laps.End("lost");
    execution.ended(end);
  }
  for (auto& [sequence, reply] : opening) reply.set_value(std::unexpected(Dead()));
}

}  // namespace palmshed::backends::native
