#include "child/host_pids.h"

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "child/failure.h"
#include "child/kernel_abi.h"
#include "child/pool.h"
#include "child/processes.h"
#include "child/raw.h"
#include "child/wire.h"

namespace palmshed::child {
namespace {

// The lists may hold numbers that have been used again, by processes that are not the sandbox's.
void AwaitEnd(int pid) {
  if (Call(SYS_tgkill, pid, pid, 0) < 0) return;
  const long pidfd = Call(SYS_pidfd_open, pid, 0);
  if (pidfd < 0) return;
  if (Call(SYS_pidfd_send_signal, pidfd, 0, nullptr, 0) >= 0) {
    AwaitReadable(static_cast<int>(pidfd));
  }
  Close(static_cast<int>(pidfd));
}

// `init` has ended when its pidfd says so: then none of its threads can start anything any more,
// and what one of them was starting is on the kernel's list.
[[noreturn]] void GuardInChild(Pool* pool, int init) {
  pool->self = static_cast<int>(Call(SYS_getpid));
  (void)Prctl(PR_SET_NAME, reinterpret_cast<unsigned long>("palmshed-guard"));
  if (ProveSignalScope(*pool).failed()) ExitGroup(1);
  AwaitReadable(init);
  KillSandbox();
  ProcessWalk walk(pool);
  for (int pid = walk.Next(); pid != 0; pid = walk.Next()) AwaitEnd(pid);
  ExitGroup(0);
}

}  // namespace

Failure EnterHostPids(const InitConfig& config, Pool* pool) {
  const bool root = Call(SYS_getuid) == 0 || Call(SYS_geteuid) == 0;
  const bool scoped =
      (config.flags & kInitSignalScope) != 0 && (config.scoped & kLandlockScopeSignal) != 0;
  if (root || !scoped) return {Step::kSignalScope, EPERM};
  const long proc = OpenAt(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY);
  if (proc < 0) return FailureIf(proc, Step::kOpenProc);
  pool->host_pids = true;
  pool->proc_directory = static_cast<int>(proc);
  pool->supervisor = static_cast<int>(Call(SYS_getppid));
  return FailureIf(Call(SYS_kill, pool->supervisor, 0), Step::kSignalScope);
}

Failure ProveSignalScope(const Pool& pool) {
  if (!pool.host_pids) return kSuccess;
  const long result = Call(SYS_kill, pool.supervisor, 0);
  if (result == -EPERM) return kSuccess;
  return FailureIf(result < 0 ? result : -EOPNOTSUPP, Step::kSignalScope);
}

// A child of the supervisor's (CLONE_PARENT): were it init's, init would never be without children.
Failure StartGuard(Pool* pool) {
  const long init = Call(SYS_pidfd_open, Call(SYS_getpid), 0);
  if (init < 0) return FailureIf(init, Step::kGuard);
  constexpr unsigned long kFlags = CLONE_PARENT | CLONE_PIDFD | SIGCHLD;
  const long pid = Call(SYS_clone, kFlags, nullptr, &pool->guard, nullptr, nullptr);
  if (pid < 0) return FailureIf(pid, Step::kGuard);
  if (pid == 0) GuardInChild(pool, static_cast<int>(init));
  Close(static_cast<int>(init));
  return kSuccess;
}

void KillSandbox() { (void)Call(SYS_kill, -1, SIGKILL); }

}  // namespace palmshed::child
