#include "child/inherited.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdint>

#include "child/kernel_abi.h"
#include "child/raw.h"
#include "child/wire.h"

namespace palmshed::child {
namespace {

constexpr int kSignals = 64;
constexpr int kFirstFreeFd = kHelperFd + 1;

struct KernelSigaction {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  std::uint64_t mask;
};

void ResetSignals() {
  const KernelSigaction standard{};
  for (int signal = 1; signal <= kSignals; ++signal) {
    (void)Call(SYS_rt_sigaction, signal, &standard, nullptr, sizeof(std::uint64_t));
  }
  const std::uint64_t none = 0;
  (void)Call(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none);
}

void ResetScheduling() {
  const int priority = 0;
  unsigned long everywhere[128];
  for (auto& word : everywhere) word = ~0UL;
  (void)Call(SYS_sched_setscheduler, 0, SCHED_OTHER, &priority);
  (void)Call(SYS_setpriority, PRIO_PROCESS, 0, 0);
  (void)Call(SYS_sched_setaffinity, 0, sizeof everywhere, everywhere);
  (void)Call(SYS_ioprio_set, kIoPriorityProcess, 0, 0);
  (void)Prctl(PR_SET_TIMERSLACK, kDefaultTimerSlackNs);
  (void)Prctl(PR_SET_THP_DISABLE, 0);
}

void ResetOomScore() {
  const long file = OpenAt(AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY);
  if (file < 0) return;
  (void)Call(SYS_write, file, "0", 1);
  Close(static_cast<int>(file));
}

// All three are taken afterwards: whoever opens something later must not get one of them. They may
// have been closed when we were started, and then one of them is what the open returns.
long ResetStandardStreams() {
  const long null = OpenAt(AT_FDCWD, "/dev/null", O_RDWR);
  if (null < 0) return null;
  for (int fd = 0; fd <= 2; ++fd) {
    const long result = fd == null ? Call(SYS_fcntl, fd, F_SETFD, 0) : Call(SYS_dup3, null, fd, 0);
    if (result < 0) return result;
  }
  if (null > 2) Close(static_cast<int>(null));
  return 0;
}

}  // namespace

long ResetInherited() {
  ResetSignals();
  (void)Call(SYS_setsid);
  (void)Call(SYS_umask, 022);
  (void)Call(SYS_chdir, "/");
  (void)Call(SYS_personality, 0);
  ResetScheduling();
  ResetOomScore();
  (void)Call(SYS_close_range, kFirstFreeFd, ~0U, 0);
  return ResetStandardStreams();
}

void LiftOwnLimits() {
  constexpr int kResources[] = {RLIMIT_CPU,    RLIMIT_FSIZE,      RLIMIT_DATA,
                                RLIMIT_AS,     RLIMIT_NPROC,      RLIMIT_NOFILE,
                                RLIMIT_RTTIME, RLIMIT_SIGPENDING, RLIMIT_MEMLOCK};
  for (const int resource : kResources) {
    rlimit limit{};
    if (Call(SYS_prlimit64, 0, resource, nullptr, &limit) < 0) continue;
    limit.rlim_cur = limit.rlim_max;
    (void)Call(SYS_prlimit64, 0, resource, &limit, nullptr);
  }
}

}  // namespace palmshed::child
