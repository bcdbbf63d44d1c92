// The supervisor: starts a sandbox's init as an ordinary child process and adopts what inits leave
// behind. Nothing here signals more than one process at a time: the pid namespace is the host's,
// and the supervisor runs as the user whose other programs live there.
//
// Who ends what. The kernel kills an init when the supervisor ends (prctl(2), PR_SET_PDEATHSIG); an
// init's guard, which is confined as init is, then kills everything of that sandbox (host_pids.h).
// What both would have ended is left only if somebody killed init and guard together; the
// supervisor, having adopted it, ends that last.
#include "child/supervisor.h"

#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "child/failure.h"
#include "child/keyring.h"
#include "child/launcher_reply.h"
#include "child/lifeline.h"
#include "child/message.h"
#include "child/raw.h"
#include "child/sandbox_table.h"
#include "child/signal_queue.h"
#include "child/text.h"
#include "child/wire.h"

namespace palmshed::child {
namespace {

/// How long guards may take before what they should have ended is ended one by one.
constexpr std::uint64_t kGuardTimeNs = 2'000'000'000;
constexpr std::uint64_t kSweepPauseNs = 20'000'000;

struct SupervisorMemory {
  alignas(8) char message[kMaxMessage];
  alignas(16) char stack[16 * 1024];
  SandboxTable sandboxes;
};

void MustSucceed(const Failure& failure) {
  if (!failure.failed()) return;
  const LauncherReply reply = FailureReply(LauncherAnswer::kFailed, 0, failure);
  (void)SendMessage(kSocketFd, &reply, sizeof reply);
  ExitGroup(1);
}

// ---- an init between vfork and exec, in the supervisor's memory

struct Birth {
  int socket;
  const char* workspace;
  Failure failure;
};

// The socket's source is never 3, 4 or 5: those are taken.
Failure BecomeInit(const Birth& birth) {
  const long entered = Call(SYS_chdir, birth.workspace);
  if (entered < 0) return FailureIf(entered, Step::kOpenWorkspace);
  (void)Call(SYS_dup3, birth.socket, kSocketFd, 0);
  const char* const arguments[] = {"palmshed-init", "sandbox", nullptr};
  const char* const environment[] = {nullptr};
  const long result = Call(SYS_execveat, kHelperFd, "", arguments, environment, AT_EMPTY_PATH);
  return FailureIf(result, Step::kExecInit);
}

void BecomeInitInChild(void* shared) {
  auto* const birth = static_cast<Birth*>(shared);
  birth->failure = BecomeInit(*birth);
  ExitGroup(1);
}

class Supervisor {
 public:
  explicit Supervisor(SupervisorMemory* memory) : memory_(*memory) {}
  void Start();
  [[noreturn]] void Serve();

 private:
  void ReadConfig();
  void SendReply(const LauncherReply& reply);
  void ServeRequest();
  Failure Create(const Message& message, std::uint32_t sequence, int* pidfd);
  Failure Spawn(Birth* birth, std::uint32_t sequence, int* pidfd);
  bool ReapSome();
  [[noreturn]] void End();

  SupervisorMemory& memory_;
  int child_ends_ = -1;
  bool unheard_ = false;  ///< The engine waits for what could not be sent, or is gone.
};

// What it says is for a launcher: there is no view to build.
void Supervisor::ReadConfig() {
  Message message = ReceiveMessage(kSocketFd, memory_.message, sizeof memory_.message);
  if (message.gone()) ExitGroup(0);
  message.CloseFds();
}

void Supervisor::SendReply(const LauncherReply& reply) {
  if (SendMessage(kSocketFd, &reply, sizeof reply) < 0) unheard_ = true;
}

void Supervisor::Start() {
  ReadConfig();
  if (Call(SYS_getuid) == 0 || Call(SYS_geteuid) == 0) MustSucceed({Step::kSignalScope, EPERM});
  MustSucceed(FailureIf(HideMemory(), Step::kReadConfig));
  // An orderly end, in Serve, is better than one by the parent-death signal.
  (void)Prctl(PR_SET_PDEATHSIG, 0);
  (void)Prctl(PR_SET_NAME, reinterpret_cast<unsigned long>("palmshed-superv"));
  for (const int fd : {kSocketFd, kEnginePidfd, kHelperFd}) {
    MustSucceed(FailureIf(Call(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC), Step::kReadConfig));
  }
  MustSucceed(FailureIf(Prctl(PR_SET_CHILD_SUBREAPER, 1), Step::kReadConfig));
  MustSucceed(FailureIf(SealSessionKeyring(), Step::kKeyring));
  const long child_ends = OpenSignalQueue(SIGCHLD);
  MustSucceed(FailureIf(child_ends, Step::kReadConfig));
  child_ends_ = static_cast<int>(child_ends);
  LauncherReply reply{};
  reply.answer = LauncherAnswer::kReady;
  SendReply(reply);
}

// Sleeps in vfork until init runs; the helper is a file in memory, so that its exec cannot hang.
Failure Supervisor::Spawn(Birth* birth, std::uint32_t sequence, int* pidfd) {
  constexpr unsigned long kFlags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD;
  const long pid = PalmshedCloneOnStack(kFlags, memory_.stack + sizeof memory_.stack, pidfd,
                                        nullptr, BecomeInitInChild, birth);
  if (pid < 0) return FailureIf(pid, Step::kCloneSandbox);
  if (!birth->failure.failed()) {
    memory_.sandboxes.Add(static_cast<int>(pid), sequence);
    return kSuccess;
  }
  while (Call(SYS_wait4, pid, nullptr, __WALL, nullptr) == -EINTR) {
  }
  Close(*pidfd);
  *pidfd = -1;
  return birth->failure;
}

Failure Supervisor::Create(const Message& message, std::uint32_t sequence, int* pidfd) {
  const char* const workspace = memory_.message + sizeof(CreateRequest);
  const char* const end = memory_.message + message.size;
  if (message.truncated) return {Step::kRequest, EMFILE};
  if (message.fd_count != 1 || end[-1] != '\0') return {Step::kRequest, EBADMSG};
  if (memory_.sandboxes.full()) return {Step::kCloneSandbox, EAGAIN};
  Birth birth{message.fds[0], workspace, kSuccess};
  return Spawn(&birth, sequence, pidfd);
}

void Supervisor::ServeRequest() {
  Message message = ReceiveMessage(kSocketFd, memory_.message, sizeof memory_.message);
  if (message.gone()) End();
  CreateRequest request{};
  int pidfd = -1;
  Failure failure{Step::kRequest, EBADMSG};
  if (message.size > static_cast<long>(sizeof request)) {
    std::memcpy(&request, memory_.message, sizeof request);
    if (request.op == LauncherOp::kCreate) failure = Create(message, request.sequence, &pidfd);
  }
  message.CloseFds();
  if (failure.failed()) {
    SendReply(FailureReply(LauncherAnswer::kCreateFailed, request.sequence, failure));
    return;
  }
  const auto reply = FailureReply(LauncherAnswer::kCreated, request.sequence, kSuccess);
  if (SendCreated(reply, pidfd) < 0) unheard_ = true;
  Close(pidfd);
}

// Inits, guards and what was adopted. False when no child is left.
bool Supervisor::ReapSome() {
  DrainSignalQueue(child_ends_);
  for (;;) {
    int status = 0;
    const long pid = Call(SYS_wait4, -1, &status, WNOHANG | __WALL, nullptr);
    if (pid <= 0) return pid == 0;
    LauncherReply reply{};
    reply.answer = LauncherAnswer::kDied;
    reply.wait_status = status;
    if (memory_.sandboxes.Remove(static_cast<int>(pid), &reply.sequence)) SendReply(reply);
  }
}

// Children of this thread, which is the only one (proc(5), CONFIG_PROC_CHILDREN). What is adopted
// while this runs is met in the next round.
void KillChildren() {
  const long file = OpenAt(AT_FDCWD, "/proc/thread-self/children", O_RDONLY);
  if (file < 0) return;
  char text[4096] = {};
  (void)Call(SYS_read, file, text, sizeof text - 1);
  Close(static_cast<int>(file));
  for (const char* at = text; *at >= '0' && *at <= '9';) {
    (void)Call(SYS_kill, ParseNumber(at), SIGKILL);
    while (*at >= '0' && *at <= '9') ++at;
    while (*at == ' ') ++at;
  }
}

// An unreaped child keeps its number, so none of these can be somebody else's.
void Supervisor::End() {
  for (std::uint32_t i = 0; i < memory_.sandboxes.count(); ++i) {
    (void)Call(SYS_kill, memory_.sandboxes.pid(i), SIGKILL);
  }
  const std::uint64_t deadline = NowNs() + kGuardTimeNs;
  while (ReapSome()) {
    const bool late = NowNs() > deadline;
    if (late) KillChildren();
    pollfd watched{child_ends_, POLLIN, 0};
    (void)Poll(&watched, 1, late ? kSweepPauseNs : kGuardTimeNs);
  }
  ExitGroup(0);
}

void Supervisor::Serve() {
  while (!unheard_) {
    pollfd watched[] = {
        {kSocketFd, POLLIN, 0}, {kEnginePidfd, POLLIN, 0}, {child_ends_, POLLIN, 0}};
    (void)Poll(watched, 3, kNoTimeout);
    if (watched[1].revents != 0) End();
    if (watched[2].revents != 0) (void)ReapSome();
    if (watched[0].revents != 0) ServeRequest();
  }
  End();
}

}  // namespace

void RunSupervisor() {
  static SupervisorMemory memory;
  Supervisor supervisor(&memory);
  supervisor.Start();
  supervisor.Serve();
}

}  // namespace palmshed::child
