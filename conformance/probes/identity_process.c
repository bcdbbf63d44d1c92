// What a process is: identity, rights, limits, scheduling.
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "identity.h"
#include "probe.h"

void ids(char** unused) {
  (void)unused;
  uid_t real, effective, saved;
  gid_t real_group, effective_group, saved_group;
  getresuid(&real, &effective, &saved);
  getresgid(&real_group, &effective_group, &saved_group);
  detail_number("uid", real);
  detail_number("euid", effective);
  detail_number("suid", saved);
  detail_number("gid", real_group);
  detail_number("egid", effective_group);
  detail_number("sgid", saved_group);
  detail_number("fsuid", syscall(SYS_setfsuid, -1L));  // Refused, and says what is.
  detail_number("fsgid", syscall(SYS_setfsgid, -1L));
  report(0);
}

void groups(char** unused) {
  (void)unused;
  gid_t all[1024];
  const int count = getgroups(1024, all);
  list_begin("groups");
  for (int i = 0; i < count; ++i) list_number(all[i]);
  list_end();
  detail_number("count", count);
  report(count);
}

void user(char** unused) {
  (void)unused;
  FILE* file = fopen("/etc/passwd", "re");
  const struct passwd* entry = NULL;
  while (file != NULL && (entry = fgetpwent(file)) != NULL && entry->pw_uid != getuid()) {
  }
  if (entry != NULL) {
    detail_text("name", entry->pw_name);
    detail_text("home", entry->pw_dir);
    detail_text("shell", entry->pw_shell);
  }
  errno = ENOENT;
  report(entry == NULL ? -1 : 0);
  if (file != NULL) fclose(file);
}

static ssize_t detail_file(const char* name, const char* path) {
  char text[512];
  const ssize_t size = read_file(path, text, sizeof text);
  if (size >= 0) detail_bytes(name, text, (size_t)size);
  return size;
}

void uid_map(char** unused) {
  (void)unused;
  const ssize_t known = detail_file("uidMap", "/proc/self/uid_map");
  const int failure = errno;
  (void)detail_file("gidMap", "/proc/self/gid_map");
  (void)detail_file("setgroups", "/proc/self/setgroups");
  errno = failure;
  report(known);
}

void capabilities(char** unused) {
  (void)unused;
  uint32_t header[2] = {0x20080522, 0}, sets[6] = {0};
  const long result = syscall(SYS_capget, header, sets);
  static const char* const kNames[] = {"effective", "permitted", "inheritable"};
  for (int i = 0; i < 3; ++i) detail_format(kNames[i], "%08x%08x", sets[i + 3], sets[i]);
  uint64_t bounding = 0, ambient = 0;
  for (int i = 0; i < 64; ++i) {
    if (prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1) bounding |= (uint64_t)1 << i;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, i, 0, 0) == 1) ambient |= (uint64_t)1 << i;
  }
  detail_format("bounding", "%016llx", (unsigned long long)bounding);
  detail_format("ambient", "%016llx", (unsigned long long)ambient);
  report(result);
}

// The number after `name` in /proc/self/status; -1 when it is not there.
static long long status_number(const char* name, int base) {
  static char text[8192];
  const ssize_t size = read_file("/proc/self/status", text, sizeof text - 1);
  if (size < 0) return -1;
  text[size] = '\0';
  const char* line = strstr(text, name);
  return line == NULL ? -1 : (long long)strtoull(line + strlen(name), NULL, base);
}

void confinement(char** unused) {
  (void)unused;
  detail_flag("noNewPrivs", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
  // Strict mode would not have let this program come here.
  detail_number("seccomp", prctl(PR_GET_SECCOMP, 0, 0, 0, 0));
  const long long filters = status_number("\nSeccomp_filters:", 10);
  if (filters >= 0) detail_number("seccompFilters", filters);
  detail_number("dumpable", prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
  report(0);
}

void rlimits(char** unused) {
  (void)unused;
  static const struct {
    const char* name;
    int which;
  } kLimits[] = {
      {"core", RLIMIT_CORE},         {"cpu", RLIMIT_CPU},       {"fsize", RLIMIT_FSIZE},
      {"data", RLIMIT_DATA},         {"stack", RLIMIT_STACK},   {"as", RLIMIT_AS},
      {"rss", RLIMIT_RSS},           {"nofile", RLIMIT_NOFILE}, {"nproc", RLIMIT_NPROC},
      {"memlock", RLIMIT_MEMLOCK},   {"locks", RLIMIT_LOCKS},   {"sigpending", RLIMIT_SIGPENDING},
      {"msgqueue", RLIMIT_MSGQUEUE}, {"nice", RLIMIT_NICE},     {"rtprio", RLIMIT_RTPRIO},
      {"rttime", RLIMIT_RTTIME}};
  for (size_t i = 0; i < sizeof kLimits / sizeof *kLimits; ++i) {
    struct rlimit limit = {0};
    (void)getrlimit(kLimits[i].which, &limit);
    list_begin(kLimits[i].name);
    list_number(limit.rlim_cur == RLIM_INFINITY ? -1 : (long long)limit.rlim_cur);
    list_number(limit.rlim_max == RLIM_INFINITY ? -1 : (long long)limit.rlim_max);
    list_end();
  }
  report(0);
}

void nice_value(char** unused) {
  (void)unused;
  detail_number("nice", getpriority(PRIO_PROCESS, 0));
  report(0);
}

void io_priority(char** unused) {
  (void)unused;
  const long priority = syscall(SYS_ioprio_get, 1L, 0L);
  if (priority >= 0) detail_number("class", priority >> 13);
  if (priority >= 0) detail_number("level", priority & 7);
  report(priority);
}

void scheduler(char** unused) {
  (void)unused;
  static const char* const kPolicies[] = {"other", "fifo", "rr", "batch", "?", "idle", "deadline"};
  struct sched_param parameters = {0};
  const long policy = syscall(SYS_sched_getscheduler, 0L);
  (void)syscall(SYS_sched_getparam, 0L, &parameters);
  const long bare = policy & ~0x40000000L;
  detail_text("policy", bare >= 0 && bare < 7 ? kPolicies[bare] : "?");
  detail_number("priority", parameters.sched_priority);
  detail_flag("resetOnFork", policy != bare);
  report(policy);
}

void affinity(char** unused) {
  (void)unused;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  const int result = sched_getaffinity(0, sizeof cpus, &cpus);
  detail_number("cpus", CPU_COUNT(&cpus));
  list_begin("list");
  for (unsigned i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &cpus)) list_number(i);
  }
  list_end();
  report(result);
}

void timer_slack(char** unused) {
  (void)unused;
  const long slack = syscall(SYS_prctl, (long)PR_GET_TIMERSLACK, 0L, 0L, 0L, 0L);
  detail_number("ns", slack);
  report(slack);
}

void personality_bits(char** unused) {
  (void)unused;
  const int bits = personality(0xffffffff);
  detail_number("personality", bits);
  report(bits);
}

void oom_score(char** unused) {
  (void)unused;
  char text[24] = "";
  const ssize_t size = read_file("/proc/self/oom_score_adj", text, sizeof text - 1);
  if (size > 0) detail_number("value", strtol(text, NULL, 10));
  report(size);
}

void secure_bits(char** unused) {
  (void)unused;
  const int bits = prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);
  detail_number("securebits", bits);
  report(bits);
}

void umask_value(char** unused) {
  (void)unused;
  const mode_t mask = umask(022);
  (void)umask(mask);
  detail_format("umask", "%04o", mask);
  report(0);
}

void session(char** unused) {
  (void)unused;
  detail_number("pid", getpid());
  detail_number("ppid", getppid());
  detail_number("pgid", getpgid(0));
  detail_number("sid", getsid(0));
  detail_flag("leader", getsid(0) == getpid());
  report(0);
}

void signals(char** unused) {
  (void)unused;
  uint64_t blocked = 0;
  // The raw call: the C library leaves out the signals that it keeps for itself.
  const long result = syscall(SYS_rt_sigprocmask, (long)SIG_BLOCK, NULL, &blocked, 8L);
  list_begin("blocked");
  for (int i = 1; i <= 64; ++i) {
    if ((blocked >> (i - 1) & 1) != 0) list_number(i);
  }
  list_end();
  list_begin("ignored");
  for (int i = 1; i <= 64; ++i) {
    struct sigaction action;
    if (sigaction(i, NULL, &action) == 0 && action.sa_handler == SIG_IGN) list_number(i);
  }
  list_end();
  report(result);
}

void process_attributes(char** unused) {
  (void)unused;
  int death_signal = 0, reaper = 0;
  char name[16] = "";
  (void)prctl(PR_GET_PDEATHSIG, &death_signal, 0, 0, 0);
  (void)prctl(PR_GET_CHILD_SUBREAPER, &reaper, 0, 0, 0);
  (void)prctl(PR_GET_NAME, name, 0, 0, 0);
  detail_number("parentDeathSignal", death_signal);
  detail_flag("subreaper", reaper);
  detail_flag("thpDisabled", prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1);
  detail_flag("mdwe", prctl(66 /* PR_GET_MDWE */, 0, 0, 0, 0) > 0);
  detail_text("name", name);
  report(0);
}
