// The launcher: PID 1 of its own pid namespace, in a user namespace of its own unless the host has
// none. It builds the view once, then makes sandboxes until the engine goes. It holds every
// capability in its namespace and no filter, so no workload ever gets to see it: sandboxes have
// pid, mount and ipc namespaces of their own, and the only way to it is the engine's socket.
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "child/create.h"
#include "child/failure.h"
#include "child/keyring.h"
#include "child/launcher_reply.h"
#include "child/lifeline.h"
#include "child/message.h"
#include "child/network.h"
#include "child/raw.h"
#include "child/roles.h"
#include "child/sandbox_table.h"
#include "child/signal_queue.h"
#include "child/view.h"
#include "child/wire.h"

namespace palmshed::child {
namespace {

void SendReply(const LauncherReply& reply) {
  if (SendMessage(kSocketFd, &reply, sizeof reply) < 0) ExitGroup(0);  // The engine is gone.
}

[[noreturn]] void FailLauncher(const Failure& failure) {
  SendReply(FailureReply(LauncherAnswer::kFailed, 0, failure));
  ExitGroup(1);
}

void MustSucceed(const Failure& failure) {
  if (failure.failed()) FailLauncher(failure);
}

// What is too large for a stack; zero at first, so that it takes no room in the program.
struct LauncherMemory {
  alignas(8) char message[kMaxMessage];
  SandboxTable sandboxes;
};

class Launcher {
 public:
  explicit Launcher(LauncherMemory* memory) : memory_(*memory) {}
  void Start();
  [[noreturn]] void Serve();

 private:
  void ReadConfig();
  void KeepDescriptors();
  void ServeRequest();
  Failure Create(const CreateRequest& request, const Message& message, CreatedSandbox* created);
  void ReportDeaths();
  void MakeSpareNetwork();

  LauncherMemory& memory_;
  Surroundings surroundings_;
  int child_ends_ = -1;
};

// The engine's descriptors must not reach a sandbox, and 5 is needed there for another purpose.
void Launcher::KeepDescriptors() {
  constexpr int kFds[] = {kSocketFd, kEnginePidfd, kHelperFd};
  for (const int fd : kFds) {
    MustSucceed(FailureIf(Call(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC), Step::kReadConfig));
  }
  const long helper = Duplicate(kHelperFd, kHelperFd + 1);
  MustSucceed(FailureIf(helper, Step::kReadConfig));
  surroundings_.helper = static_cast<int>(helper);
}

void Launcher::ReadConfig() {
  Message message = ReceiveMessage(kSocketFd, memory_.message, sizeof memory_.message);
  if (message.gone()) ExitGroup(0);
  message.CloseFds();
  if (message.truncated || message.size < static_cast<long>(sizeof(LauncherConfig))) {
    FailLauncher({Step::kReadConfig, EBADMSG});
  }
  LauncherConfig config;
  std::memcpy(&config, memory_.message, sizeof config);
  surroundings_.flags = config.flags;
  if ((config.flags & (kLauncherRoot | kLauncherNoUserNamespace | kLauncherDropGroups)) != 0) {
    MustSucceed(FailureIf(Call(SYS_setgroups, 0, nullptr), Step::kSetgroups));
  }
  MustSucceed(BuildView({.bytes = memory_.message + sizeof config,
                         .size = static_cast<std::size_t>(message.size) - sizeof config,
                         .count = config.entries},
                        &surroundings_.view));
}

void Launcher::Start() {
  LauncherReply reply{};
  reply.answer = LauncherAnswer::kReady;
  reply.stamps[0] = NowNs();
  MustSucceed(FailureIf(HideMemory(), Step::kReadConfig));
  (void)Prctl(PR_SET_NAME, reinterpret_cast<unsigned long>("palmshed-launch"));
  (void)DieWithParent();
  if (HasEnded(kEnginePidfd)) ExitGroup(0);
  KeepDescriptors();
  MustSucceed(FailureIf(SealSessionKeyring(), Step::kKeyring));
  reply.stamps[1] = NowNs();
  ReadConfig();
  reply.stamps[2] = NowNs();
  // What sandboxes see as the root of the control groups; a kernel without them has nothing to see.
  const long grouped = Call(SYS_unshare, CLONE_NEWCGROUP);
  if (grouped != -EINVAL) MustSucceed(FailureIf(grouped, Step::kUnshareMounts));
  const long child_ends = OpenSignalQueue(SIGCHLD);
  MustSucceed(FailureIf(child_ends, Step::kReadConfig));
  child_ends_ = static_cast<int>(child_ends);
  reply.stamps[3] = NowNs();
  SendReply(reply);
}

std::uint32_t CountStrings(const char* bytes, const char* end) {
  std::uint32_t count = 0;
  for (; bytes < end; bytes += std::strlen(bytes) + 1) ++count;
  return count;
}

Failure Launcher::Create(const CreateRequest& request, const Message& message,
                         CreatedSandbox* created) {
  const char* const workspace = memory_.message + sizeof request;
  const char* const end = memory_.message + message.size;
  const int own_fds = message.fd_count - static_cast<int>(request.host_mounts);
  const bool with_trees = own_fds == 3;
  if (message.truncated) return {Step::kRequest, EMFILE};
  if (request.host_mounts > kMaxHostMounts || (own_fds != 1 && !with_trees) || end[-1] != '\0') {
    return {Step::kRequest, EBADMSG};
  }
  if (CountStrings(workspace, end) != 2 + request.host_mounts) return {Step::kRequest, EBADMSG};
  const char* const tmp = workspace + std::strlen(workspace) + 1;
  if (memory_.sandboxes.full()) return {Step::kCloneSandbox, EAGAIN};
  const SandboxOrder order{message.fds[0],
                           request.uid,
                           workspace,
                           tmp,
                           with_trees ? message.fds[1] : -1,
                           with_trees ? message.fds[2] : -1,
                           tmp + std::strlen(tmp) + 1,
                           message.fds + own_fds,
                           request.host_mounts};
  const Failure failure = CreateSandbox(&surroundings_, order, created);
  if (!failure.failed()) memory_.sandboxes.Add(created->pid, request.sequence);
  return failure;
}

void Launcher::ServeRequest() {
  Message message = ReceiveMessage(kSocketFd, memory_.message, sizeof memory_.message);
  if (message.gone()) ExitGroup(0);
  CreateRequest request{};
  CreatedSandbox created;
  Failure failure{Step::kRequest, EBADMSG};
  if (message.size > static_cast<long>(sizeof request)) {
    std::memcpy(&request, memory_.message, sizeof request);
    if (request.op == LauncherOp::kCreate) failure = Create(request, message, &created);
  }
  message.CloseFds();
  LauncherReply reply =
      FailureReply(failure.failed() ? LauncherAnswer::kCreateFailed : LauncherAnswer::kCreated,
                   request.sequence, failure);
  std::memcpy(reply.stamps, created.stamps, sizeof reply.stamps);
  if (SendCreated(reply, created.pidfd) < 0) ExitGroup(0);
  if (created.pidfd >= 0) Close(created.pidfd);
}

void Launcher::ReportDeaths() {
  DrainSignalQueue(child_ends_);
  for (;;) {
    int status = 0;
    const long pid = Call(SYS_wait4, -1, &status, WNOHANG | __WALL, nullptr);
    if (pid <= 0) return;
    LauncherReply reply{};
    reply.answer = LauncherAnswer::kDied;
    reply.wait_status = status;
    if (memory_.sandboxes.Remove(static_cast<int>(pid), &reply.sequence)) SendReply(reply);
  }
}

// A namespace serves one sandbox. The next is made when nothing has been asked for a while, since
// making it takes longer than the rest of a create, and whoever needs one sandbox only needs no
// other.
constexpr std::uint64_t kIdleNs = 20'000'000;

void Launcher::MakeSpareNetwork() {
  if ((surroundings_.flags & kLauncherSpareNetwork) == 0 || surroundings_.spare_network) return;
  if ((surroundings_.flags & kLauncherHostNetwork) != 0) return;
  if (Call(SYS_unshare, CLONE_NEWNET) < 0) return;  // Then the next create makes its own.
  surroundings_.spare_network = BringLoopbackUp() >= 0;
}

void Launcher::Serve() {
  MakeSpareNetwork();  // The engine has the first sandbox's files to make meanwhile.
  for (;;) {
    pollfd watched[] = {
        {kSocketFd, POLLIN, 0}, {kEnginePidfd, POLLIN, 0}, {child_ends_, POLLIN, 0}};
    if (Poll(watched, 3, kIdleNs) == 0) {
      MakeSpareNetwork();
      (void)Poll(watched, 3, kNoTimeout);
    }
    if (watched[1].revents != 0) ExitGroup(0);
    if (watched[2].revents != 0) ReportDeaths();
    if (watched[0].revents != 0) ServeRequest();
  }
}

}  // namespace

void RunLauncher() {
  static LauncherMemory memory;
  Launcher launcher(&memory);
  launcher.Start();
  launcher.Serve();
}

}  // namespace palmshed::child
