#include "backends/native/launcher.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/native/host_mounts.h"
#include "base/bytes.h"
#include "base/loop.h"
#include "base/result.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "child/step_names.h"
#include "child/wire.h"
#include "palmshed/error.h"

namespace palmshed::backends::native {
namespace {

/// Above every descriptor that the helper expects at a fixed place.
constexpr int kParkedFd = child::kHelperFd + 1;

struct SpawnPlan {
  int socket;
  int engine;
  int helper;
  const char* const* argv;
  int error;  ///< Written by the child.
};

/// Of a number beyond RLIMIT_NOFILE fcntl(2) says EINVAL: that too is for want of descriptors.
int Park(int fd) {
  const int parked = ::fcntl(fd, F_DUPFD, kParkedFd);
  if (parked < 0 && errno == EINVAL) errno = EMFILE;
  return parked;
}

/// Runs in the vforked child, which shares the engine's memory: system calls only.
[[gnu::noinline]] void ExecHelper(SpawnPlan* plan) {
  static constexpr const char* kNoEnvironment[] = {nullptr};
  const int socket = Park(plan->socket);
  const int engine = Park(plan->engine);
  const int helper = Park(plan->helper);
  if (socket >= 0 && engine >= 0 && helper >= 0 && ::dup2(socket, child::kSocketFd) >= 0 &&
      ::dup2(engine, child::kEnginePidfd) >= 0 && ::dup2(helper, child::kHelperFd) >= 0) {
    // The host program's descriptors may lack close-on-exec.
    (void)::syscall(SYS_close_range, child::kHelperFd + 1, ~0U, 0);
    (void)::syscall(SYS_execveat, child::kHelperFd, "", plan->argv, kNoEnvironment, AT_EMPTY_PATH);
  }
  plan->error = errno;
  ::_exit(127);
}

/// vfork(2), not fork: the engine may have gigabytes resident. The loop's thread blocks all
/// signals, so no handler of the host program runs in the child.
Result<pid_t> Spawn(SpawnPlan& plan) {
  // NOLINTNEXTLINE(bugprone-unsafe-functions): only its child runs meanwhile, which does little.
  const pid_t pid = ::vfork();
  if (pid == 0) ExecHelper(&plan);
  if (pid < 0) return std::unexpected(SysError("vfork", errno));
  if (plan.error != 0) {
    (void)::waitpid(pid, nullptr, 0);
    return std::unexpected(SysError("execveat", plan.error, "palmshed-init"));
  }
  return pid;
}

Error Gone() {
  return {.code = ErrorCode::kBackendLost,
          .message = "the launcher process has died",
          .remedy = "try again: the next sandbox gets a new launcher"};
}

std::vector<std::byte> EncodeSetup(const LauncherSetup& setup) {
  const EncodedView view = setup.view();
  const child::LauncherConfig config{.flags = setup.launcher_flags, .entries = view.entries};
  std::vector<std::byte> message;
  Append(message, BytesOf(config));
  Append(message, view.records);
  return message;
}

/// The process or the host has run out of something, and may have it again later. ENOSPC is not
/// among them: of namespaces and mounts it says that a sysctl allows no more.
bool IsShortage(int sys_errno) {
  return sys_errno == EMFILE || sys_errno == ENFILE || sys_errno == ENOMEM || sys_errno == EAGAIN ||
         sys_errno == ENOBUFS || sys_errno == ETOOMANYREFS;
}

bool IsNoProcess(const child::LauncherReply& reply) {
  const bool of_maps = reply.step == child::Step::kUidMap || reply.step == child::Step::kGidMap ||
                       reply.step == child::Step::kSetgroups;
  return reply.sys_errno == ESRCH || (of_maps && reply.sys_errno == ENOENT);
}

}  // namespace

bool IsHangUp(const Error& error) {
  return error.sys_errno == EPIPE || error.sys_errno == ECONNRESET;
}

Error StepError(ErrorCode code, child::Step step, int sys_errno, std::uint32_t detail) {
  if (IsShortage(sys_errno)) code = ErrorCode::kOverloaded;
  Error error = SysError(code, child::StepName(step), sys_errno);
  if (detail != 0) error.message += " (item " + std::to_string(detail) + ")";
  return error;
}

Result<std::unique_ptr<Launcher>> Launcher::Start(Loop& loop, BorrowedFd helper,
                                                  const LauncherSetup& setup) {
  PALMSHED_TRY(auto sockets, sys::SocketPair());
  PALMSHED_TRY(const UniqueFd engine, sys::PidfdOpen(::getpid()));
  const std::string flags = std::to_string(setup.stage_flags);
  const std::array<const char*, 6> argv{"palmshed-init",       "stage",       setup.uid_map.c_str(),
                                        setup.gid_map.c_str(), flags.c_str(), nullptr};
  SpawnPlan plan{.socket = sockets.second.get(),
                 .engine = engine.get(),
                 .helper = helper,
                 .argv = argv.data(),
                 .error = 0};
  Result<pid_t> pid = 0;
  loop.Run([&] { pid = Spawn(plan); });
  if (!pid) return std::unexpected(std::move(pid.error()));
  sockets.second.reset();

  std::unique_ptr<Launcher> launcher(new Launcher(std::move(sockets.first), *pid));
  auto sent = sys::SendMessage(launcher->socket_.get(), EncodeSetup(setup));
  // One that has ended has said why.
  if (!sent && !IsHangUp(sent.error())) return std::unexpected(std::move(sent.error()));
  PALMSHED_TRY_VOID(launcher->AwaitReply(0));
  return launcher;
}

Launcher::~Launcher() {
  // Its end of file ends the launcher, and that ends stage. A close alone would not do while a
  // process that the host program has forked holds a copy.
  (void)::shutdown(socket_.get(), SHUT_RDWR);
  socket_.reset();
  // NOLINTNEXTLINE(misc-include-cleaner): the options are in <sys/wait.h>.
  (void)::waitpid(stage_, nullptr, __WALL);  // ECHILD when the host program reaps everything.
}

bool Launcher::gone() const {
  const std::lock_guard lock(mu_);
  return gone_ || sys::WaitHangup(socket_.get(), 0).value_or(true);
}

Result<UniqueFd> Launcher::Launch(const LaunchRequest& request) {
  const std::lock_guard lock(mu_);
  if (gone_) return std::unexpected(Gone());
  const child::CreateRequest header{
      .op = child::LauncherOp::kCreate,
      .sequence = ++sequence_,
      .uid = request.uid,
      .host_mounts = static_cast<std::uint32_t>(request.mounts.size())};
  std::vector<std::byte> message;
  Append(message, BytesOf(header));
  AppendString(message, request.workspace);
  AppendString(message, request.tmp);
  std::vector<BorrowedFd> fds{request.socket};
  if (request.workspace_tree >= 0) {
    fds.insert(fds.end(), {request.workspace_tree, request.tmp_tree});
  }
  for (const HostMount& mount : request.mounts) {
    const char how = mount.mount.read_only ? child::kHostMountReadOnly : child::kHostMountWritable;
    AppendString(message, how + mount.mount.source);
    fds.push_back(mount.source.get());
  }
  if (message.size() > child::kMaxMessage) {
    return std::unexpected(InvalidOption("mounts", "are too long, all together"));
  }
  if (auto sent = sys::SendMessage(socket_.get(), message, fds); !sent) {
    gone_ = IsHangUp(sent.error());
    return std::unexpected(gone_ ? Gone() : std::move(sent.error()));
  }
  return AwaitReply(header.sequence);
}

/// Deaths of earlier sandboxes may come first; their own sockets have told already.
Result<UniqueFd> Launcher::AwaitReply(std::uint32_t sequence) {
  while (true) {
    child::LauncherReply reply{};
    auto message = sys::ReceiveMessage(socket_.get(), std::as_writable_bytes(std::span(&reply, 1)));
    // Said once, when the peer has ended with a message unread, ahead of what it had sent itself.
    if (!message && message.error().sys_errno == ECONNRESET) continue;
    if (!message || message->size != sizeof reply) {
      gone_ = true;
      return std::unexpected(Gone());
    }
    switch (reply.answer) {
      case child::LauncherAnswer::kReady:
        return UniqueFd();
      case child::LauncherAnswer::kCreated:
        if (reply.sequence != sequence) continue;
        // Descriptors that this process has no room for are dropped. Without its socket, which the
        // caller closes now, what was created ends.
        if (message->fds.empty()) return std::unexpected(SysError("recvmsg", EMFILE));
        return std::move(message->fds.front());
      case child::LauncherAnswer::kFailed:
        gone_ = true;
        // Of the maps: the launcher to be has died, which says nothing of what this host can do.
        if (IsNoProcess(reply)) return std::unexpected(Gone());
        return std::unexpected(
            StepError(ErrorCode::kUnsupported, reply.step, reply.sys_errno, reply.detail));
      case child::LauncherAnswer::kCreateFailed:
        return std::unexpected(
            StepError(ErrorCode::kUnsupported, reply.step, reply.sys_errno, reply.detail));
      case child::LauncherAnswer::kDied:
        continue;
    }
  }
}

}  // namespace palmshed::backends::native
