// The stage: starts the launcher and gives it its identity. It stays in the host's user namespace,
// since only from there may the launcher's maps be written (user_namespaces(7)).
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "child/failure.h"
#include "child/inherited.h"
#include "child/lifeline.h"
#include "child/message.h"
#include "child/raw.h"
#include "child/roles.h"
#include "child/supervisor.h"
#include "child/text.h"
#include "child/wire.h"

namespace palmshed::child {
namespace {

// The engine's first message is taken first: a socket closed with a message unread resets the
// connection, and the engine would see that instead of the answer (unix(7)).
[[noreturn]] void FailStage(const Failure& failure) {
  char start_of_config[8];
  Message message = ReceiveMessage(kSocketFd, start_of_config, sizeof start_of_config);
  message.CloseFds();
  LauncherReply reply{};
  reply.answer = LauncherAnswer::kFailed;
  reply.step = failure.step;
  reply.sys_errno = failure.sys_errno;
  (void)SendMessage(kSocketFd, &reply, sizeof reply);
  ExitGroup(1);
}

struct Launcher {
  int pid;
  int pidfd;
};

// In the launcher to be: waits for its maps, then becomes a new program inside its namespace. Were
// it not executed again there, its memory would belong to the host's namespace and, not being
// dumpable, it could not write the maps of its own children.
[[noreturn]] void ExecLauncherInChild(int go, bool change_ids) {
  char word;
  if (Call(SYS_read, go, &word, 1) != 1) ExitGroup(1);  // The stage is gone.
  if (change_ids) {
    if (const long result = Call(SYS_setresgid, 0, 0, 0); result < 0) {
      FailStage(FailureIf(result, Step::kGidMap));
    }
    if (const long result = Call(SYS_setresuid, 0, 0, 0); result < 0) {
      FailStage(FailureIf(result, Step::kUidMap));
    }
  }
  (void)DieWithParent();
  if (HasEnded(go)) ExitGroup(1);  // The stage held the other end of this pipe.
  const char* const arguments[] = {"palmshed-init", "launcher", nullptr};
  const char* const environment[] = {nullptr};
  const long result = Call(SYS_execveat, kHelperFd, "", arguments, environment, AT_EMPTY_PATH);
  FailStage(FailureIf(result, Step::kExecLauncher));
}

// Returns in the stage only. `go[0]` is read by the child.
Launcher CloneLauncher(const int go[2], bool user_namespace) {
  int pidfd = -1;
  const unsigned long flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_PIDFD | SIGCHLD |
                              (user_namespace ? CLONE_NEWUSER : 0U);
  const long pid = Call(SYS_clone, flags, nullptr, &pidfd, nullptr, nullptr);
  if (pid < 0) FailStage(FailureIf(pid, Step::kCloneLauncher));
  if (pid == 0) {
    Close(go[1]);
    ExecLauncherInChild(go[0], user_namespace);
  }
  Close(go[0]);
  return {static_cast<int>(pid), pidfd};
}

Failure WriteProcFile(int pid, const char* name, const char* text, Step step) {
  ShortText path;
  path.Append("/proc/").Append(static_cast<std::uint64_t>(pid)).Append("/").Append(name);
  const long file = OpenAt(AT_FDCWD, path.c_str(), O_WRONLY);
  if (file < 0) return FailureIf(file, step);
  const long written = Call(SYS_write, file, text, std::strlen(text));
  Close(static_cast<int>(file));
  return FailureIf(written, step);
}

// ---- a gid map written by newgidmap(1)

struct Program {
  const char* arguments[16];
  Failure failure;
};

void BecomeProgramInChild(void* shared) {
  auto* const program = static_cast<Program*>(shared);
  const char* const environment[] = {nullptr};
  (void)Call(SYS_close_range, kSocketFd, ~0U, 0);
  const long result = Call(SYS_execve, kNewgidmap, program->arguments, environment);
  program->failure = FailureIf(result, Step::kGidMap);
  ExitGroup(127);
}

// Cuts `text` at its spaces and line ends; its words are arguments from `count` on.
void AddWords(char* text, Program* program, int count) {
  constexpr int kMost = static_cast<int>(sizeof program->arguments / sizeof(char*)) - 1;
  bool inside = false;
  for (; *text != '\0'; ++text) {
    const bool blank = *text == ' ' || *text == '\n';
    if (blank) *text = '\0';
    if (!blank && !inside && count < kMost) program->arguments[count++] = text;
    inside = !blank;
  }
}

Failure MapByProgram(int pid, const char* gid_map) {
  ShortText number;
  number.Append(static_cast<std::uint64_t>(pid));
  char words[128] = {};
  const std::size_t length = std::strlen(gid_map);
  if (length >= sizeof words) return {Step::kGidMap, E2BIG};
  std::memcpy(words, gid_map, length + 1);
  Program program{{"newgidmap", number.c_str()}, kSuccess};
  AddWords(words, &program, 2);
  alignas(16) static char stack[4096];
  const long child = PalmshedCloneOnStack(CLONE_VM | CLONE_VFORK | SIGCHLD, stack + sizeof stack,
                                          nullptr, nullptr, BecomeProgramInChild, &program);
  if (child < 0) return FailureIf(child, Step::kGidMap);
  int status = 0;
  while (Call(SYS_wait4, child, &status, __WALL, nullptr) == -EINTR) {
  }
  if (program.failure.failed()) return program.failure;
  return status == 0 ? kSuccess : Failure{Step::kGidMap, EPERM};
}

Failure WriteMaps(int pid, const char* uid_map, const char* gid_map, std::uint32_t flags) {
  if ((flags & kStageDenySetgroups) != 0) {
    const Failure denied = WriteProcFile(pid, "setgroups", "deny", Step::kSetgroups);
    if (denied.failed()) return denied;
  }
  const Failure uids = WriteProcFile(pid, "uid_map", uid_map, Step::kUidMap);
  if (uids.failed()) return uids;
  if ((flags & kStageNewgidmap) != 0) return MapByProgram(pid, gid_map);
  return WriteProcFile(pid, "gid_map", gid_map, Step::kGidMap);
}

// The files in /proc of a launcher that is dead or dying are root's, so that it looks as if this
// host refused the maps. One that lives waits for them.
bool HasDied(const Launcher& launcher) {
  constexpr std::uint64_t kDyingNs = 10'000'000;
  pollfd watched{launcher.pidfd, POLLIN, 0};
  return Poll(&watched, 1, kDyingNs) > 0;
}

// The parent-death signal follows the engine's thread; the pidfd follows the engine.
[[noreturn]] void StayWith(const Launcher& launcher) {
  Close(kSocketFd);  // So that the engine sees the launcher's end.
  Close(kHelperFd);
  pollfd watched[] = {{kEnginePidfd, POLLIN, 0}, {launcher.pidfd, POLLIN, 0}};
  while (Poll(watched, 2, kNoTimeout) < 0) {
  }
  (void)Call(SYS_pidfd_send_signal, launcher.pidfd, SIGKILL, nullptr, 0);
  while (Call(SYS_wait4, launcher.pid, nullptr, __WALL, nullptr) == -EINTR) {
  }
  ExitGroup(0);
}

}  // namespace

void RunStage(const char* uid_map, const char* gid_map, const char* flags_text) {
  const std::uint32_t flags = ParseNumber(flags_text);
  const bool user_namespace = (flags & kStageNoUserNamespace) == 0;
  (void)DieWithParent();
  if (HasEnded(kEnginePidfd)) FailStage({Step::kEngineGone, ESRCH});
  if (const long result = ResetInherited(); result < 0) {
    FailStage(FailureIf(result, Step::kOpenNull));
  }
  LiftOwnLimits();
  if ((flags & kStageFiltered) != 0) RunSupervisor();
  int go[2];
  if (const long result = Call(SYS_pipe2, go, O_CLOEXEC); result < 0) {
    FailStage(FailureIf(result, Step::kCloneLauncher));
  }
  const Launcher launcher = CloneLauncher(go, user_namespace);
  if (user_namespace) {
    const Failure failure = WriteMaps(launcher.pid, uid_map, gid_map, flags);
    if (failure.failed()) {
      FailStage(HasDied(launcher) ? Failure{Step::kCloneLauncher, ESRCH} : failure);
    }
  }
  const long released = Call(SYS_write, go[1], "g", 1);
  // One that is dead is seen below.
  if (released < 0 && released != -EPIPE) FailStage(FailureIf(released, Step::kCloneLauncher));
  StayWith(launcher);
}

}  // namespace palmshed::child
