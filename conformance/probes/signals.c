// Signals and other means of touching a process: whom they reach, and programs that answer them.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

enum { kMostAllowed = 100, kMostCopies = 16 };

static void zero(char** pid) { report(kill((pid_t)number(pid[0]), 0)); }
static void zero_group(char** group) { report(kill((pid_t)-number(group[0]), 0)); }
static void zero_all(char** unused) {
  (void)unused;
  report(kill(-1, 0));
}

static void zero_range(char** range) {
  const long long from = number(range[0]), to = number(range[1]);
  int count = 0;
  list_begin("allowed");
  for (long long pid = from; pid <= to; ++pid) {
    if (pid == getpid() || kill((pid_t)pid, 0) != 0) continue;
    if (++count <= kMostAllowed) list_number(pid);
  }
  list_end();
  detail_number("count", count);
  errno = ESRCH;
  report(count > 0 ? 0 : -1);
}

static void zero_thread(char** pid) {
  const pid_t target = (pid_t)number(pid[0]);
  report(syscall(SYS_tgkill, target, target, 0));
}

static void zero_queue(char** pid) {
  siginfo_t information = {.si_code = SI_QUEUE};
  report(syscall(SYS_rt_sigqueueinfo, number(pid[0]), 0L, &information));
}

static void zero_pidfd(char** pid) {
  const long fd = syscall(SYS_pidfd_open, number(pid[0]), 0L);
  report(fd < 0 ? -1 : syscall(SYS_pidfd_send_signal, fd, 0L, NULL, 0L));
  if (fd >= 0) close((int)fd);
}

static void owner(char** pid) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    report_error("no pipe");
    return;
  }
  report(fcntl(ends[0], F_SETOWN, (int)number(pid[0])));
  close(ends[0]);
  close(ends[1]);
}

// ---- Other attributes of another process, each set to what it is.

static void priority(char** pid) {
  const id_t target = (id_t)number(pid[0]);
  errno = 0;
  const int nice = getpriority(PRIO_PROCESS, target);
  report(nice == -1 && errno != 0 ? -1 : setpriority(PRIO_PROCESS, target, nice));
}

static void affinity(char** pid) {
  cpu_set_t cpus;
  const pid_t target = (pid_t)number(pid[0]);
  const int known = sched_getaffinity(target, sizeof cpus, &cpus);
  report(known != 0 ? -1 : sched_setaffinity(target, sizeof cpus, &cpus));
}

static void limits(char** pid) {
  struct rlimit limit;
  const pid_t target = (pid_t)number(pid[0]);
  const int known = prlimit(target, RLIMIT_CORE, NULL, &limit);
  report(known != 0 ? -1 : prlimit(target, RLIMIT_CORE, &limit, NULL));
}

static void scheduler(char** pid) {
  const pid_t target = (pid_t)number(pid[0]);
  struct sched_param parameters = {0};
  const long policy = syscall(SYS_sched_getscheduler, target);
  report(policy < 0 ? -1 : syscall(SYS_sched_setscheduler, target, policy, &parameters));
}

static void send_signal(char** arguments) {
  report(kill((pid_t)number(arguments[0]), (int)number(arguments[1])));
}

// ---- Programs that answer.

static void say(char** milliseconds) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  report(0);
  const long long end = now_ms(CLOCK_MONOTONIC) + number(milliseconds[0]);
  for (long long left; (left = end - now_ms(CLOCK_MONOTONIC)) > 0;) {
    const struct timespec patience = {.tv_sec = (time_t)(left / 1000),
                                      .tv_nsec = (long)(left % 1000) * 1000000};
    siginfo_t information;
    const int arrived = sigtimedwait(&all, &information, &patience);
    if (arrived < 0) continue;
    detail_number("signal", arrived);
    detail_number("from", information.si_pid);
    report_as(0, "signal");
  }
}

static void ignore(char** milliseconds) {
  for (int i = 1; i < NSIG; ++i) signal(i, SIG_IGN);
  report(0);
  sleep_ms(number(milliseconds[0]));
}

static volatile sig_atomic_t copies_left = kMostCopies;

static void answer_with_a_copy(int unused) {
  (void)unused;
  if (copies_left <= 0) return;
  --copies_left;
  (void)fork();
}

static void respawn(char** milliseconds) {
  const struct sigaction action = {.sa_handler = answer_with_a_copy};
  sigaction(SIGTERM, &action, NULL);
  for (int i = 1; i < 32; ++i) {
    if (i != SIGTERM && i != SIGCHLD) signal(i, SIG_IGN);
  }
  report(0);
  const long long end = now_ms(CLOCK_MONOTONIC) + number(milliseconds[0]);
  for (long long left; (left = end - now_ms(CLOCK_MONOTONIC)) > 0;) sleep_ms(left);
}

static void die(char** number_text) {
  const int which = (int)number(number_text[0]);
  sigset_t set;
  report(0);
  signal(which, SIG_DFL);
  sigemptyset(&set);
  sigaddset(&set, which);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  (void)kill(getpid(), which);
}

struct attempt attempts[] = {{"zero", 1, zero},
                             {"zero-group", 1, zero_group},
                             {"zero-all", 0, zero_all},
                             {"zero-range", 2, zero_range},
                             {"zero-thread", 1, zero_thread},
                             {"zero-queue", 1, zero_queue},
                             {"zero-pidfd", 1, zero_pidfd},
                             {"owner", 1, owner},
                             {"priority", 1, priority},
                             {"affinity", 1, affinity},
                             {"limits", 1, limits},
                             {"scheduler", 1, scheduler},
                             {"send", 2, send_signal},
                             {"say", 1, say},
                             {"ignore", 1, ignore},
                             {"respawn", 1, respawn},
                             {"die", 1, die},
                             {0}};
