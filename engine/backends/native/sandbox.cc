#include "backends/native/sandbox.h"

#include <sys/socket.h>

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
#include "backends/native/exec_message.h"
#include "backends/native/launcher.h"
#include "base/bytes.h"
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

Error Dead() {
  return {.code = ErrorCode::kBackendLost,
          .message = "the sandbox's init process has died",
          .remedy = "create another sandbox"};
}

/// Init has died, and the loop has not seen it yet.
bool IsHangUp(const Error& error) {
  return error.sys_errno == EPIPE || error.sys_errno == ECONNRESET;
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

Result<std::unique_ptr<NativeSandbox>> NativeSandbox::Create(Parts parts) {
  std::unique_ptr<NativeSandbox> sandbox(new NativeSandbox(std::move(parts)));
  if (auto ready = sandbox->AwaitReady(); !ready) {
    (void)sandbox->Destroy();  // Nothing half-made stays.
    return std::unexpected(std::move(ready.error()));
  }
  return sandbox;
}

Result<void> NativeSandbox::AwaitReady() {
  child::InitReply reply{};
  auto message =
      sys::ReceiveMessage(parts_.socket.get(), std::as_writable_bytes(std::span(&reply, 1)));
  if (!message || message->size != sizeof reply) return std::unexpected(Dead());
  if (reply.answer != child::InitAnswer::kReady) {
    return std::unexpected(
        StepError(ErrorCode::kUnsupported, reply.step, reply.sys_errno, reply.detail));
  }
  Result<void> watched;
  parts_.loop->Run([&] {
    auto watch = parts_.loop->WatchReadable(parts_.socket.get(), [this] { OnReadable(); });
    if (watch) {
      watch_ = *std::move(watch);
    } else {
      watched = std::unexpected(std::move(watch.error()));
    }
  });
  return watched;
}

NativeSandbox::~NativeSandbox() {
  Kill();
  // Once Destroy has told everybody, the loop may be gone before the last handle.
  if (!destroyed_) parts_.loop->Run([this] { OnDead(); });
}

void NativeSandbox::Kill() {
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

Result<std::uint32_t> NativeSandbox::Start(const plan::ExecPlan& plan, Stdio stdio, Ended ended) {
  PALMSHED_TRY_VOID(HandOver(stdio));
  std::uint32_t sequence = 0;
  {
    const std::lock_guard lock(mu_);
    if (dead_) return std::unexpected(Dead());
    sequence = ++sequence_;
    running_[sequence] = std::move(ended);
  }
  auto sent = SendExec(parts_.socket.get(), sequence, plan, stdio);
  if (sent) return sequence;
  const std::lock_guard lock(mu_);
  // Init died while this was sent, and OnDead has told `ended` already.
  if (running_.erase(sequence) == 0) return sequence;
  return std::unexpected(IsHangUp(sent.error()) ? Dead() : std::move(sent.error()));
}

Result<void> NativeSandbox::Signal(std::uint32_t execution, int signal, bool all) {
  const child::KillRequest request{
      .op = child::InitOp::kKill, .sequence = execution, .signal = signal, .all = all ? 1U : 0U};
  if (!sys::SendMessage(parts_.socket.get(), BytesOf(request))) return std::unexpected(Dead());
  return {};
}

Result<UniqueFd> NativeSandbox::OpenWorkspace() {
  std::future<Result<UniqueFd>> reply;
  child::WorkspaceRequest request{.op = child::InitOp::kWorkspace, .sequence = 0};
  {
    const std::lock_guard lock(mu_);
    if (dead_) return std::unexpected(Dead());
    request.sequence = ++sequence_;
    reply = workspaces_[request.sequence].get_future();
  }
  // A failed send means that init is dead, and then OnDead answers.
  (void)sys::SendMessage(parts_.socket.get(), BytesOf(request));
  return reply.get();
}

Result<void> NativeSandbox::Destroy() {
  {
    const std::lock_guard lock(mu_);
    if (std::exchange(destroyed_, true)) return {};
  }
  Kill();
  // Init is PID 1 of its namespace: its pidfd turns readable when every process in it is dead and
  // reaped (pid_namespaces(7)).
  PALMSHED_TRY_VOID(sys::WaitReadable(parts_.pidfd.get(), -1));
  // Elsewhere its guard holds on to the socket until that is so (child/host_pids.h).
  if (parts_.supervised) PALMSHED_TRY_VOID(sys::WaitHangup(parts_.socket.get(), -1));
  parts_.loop->Run([this] { OnDead(); });
  return parts_.home.Remove();
}

// ---- On the loop's thread.

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
    OnReply(reply, message->fds.empty() ? UniqueFd() : std::move(message->fds.front()));
  }
}

void NativeSandbox::OnReply(const child::InitReply& reply, UniqueFd fd) {
  std::unique_lock lock(mu_);
  if (reply.answer == child::InitAnswer::kEnded) {
    auto node = running_.extract(reply.sequence);
    lock.unlock();
    if (!node.empty()) node.mapped()(EndOf(reply));
    return;
  }
  auto node = workspaces_.extract(reply.sequence);
  if (node.empty()) return;
  if (fd.valid()) {
    node.mapped().set_value(std::move(fd));
  } else {
    node.mapped().set_value(
        std::unexpected(StepError(ErrorCode::kFsError, reply.step, reply.sys_errno, reply.detail)));
  }
}

void NativeSandbox::OnDead() {
  watch_.reset();
  std::map<std::uint32_t, Ended> running;
  std::map<std::uint32_t, std::promise<Result<UniqueFd>>> workspaces;
  {
    const std::lock_guard lock(mu_);
    dead_ = true;
    running.swap(running_);
    workspaces.swap(workspaces_);
  }
  for (auto& [sequence, ended] : running) ended({.kind = ExecEnd::Kind::kLost});
  for (auto& [sequence, reply] : workspaces) reply.set_value(std::unexpected(Dead()));
}

}  // namespace palmshed::backends::native
