// What a program finds around itself: descriptors, directory, environment, keyring, host, terminal.
// What it is itself is in identity_process.c.
#include "identity.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "probe.h"

enum { kMostDescriptors = 65536, kMostListed = 1000, kMostNames = 1000 };
extern char** environ;

static const char* kind_of(int fd) {
  struct stat facts;
  if (fstat(fd, &facts) != 0) return "other";
  if (S_ISFIFO(facts.st_mode)) return "pipe";
  if (S_ISREG(facts.st_mode)) return "file";
  if (S_ISSOCK(facts.st_mode)) return "socket";
  if (S_ISCHR(facts.st_mode) && facts.st_rdev == makedev(1, 3)) return "null";
  return isatty(fd) ? "terminal" : "other";
}

// Calls `each` with every open descriptor; how many there are.
static int for_each_descriptor(void (*each)(int)) {
  int count = 0;
  for (int fd = 0; fd < kMostDescriptors; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) continue;
    if (++count <= kMostListed) each(fd);
  }
  return count;
}

static void list_descriptor(int fd) { list_number(fd); }
static void name_kind(int fd) {
  char name[16];
  snprintf(name, sizeof name, "%d", fd);
  detail_text(name, kind_of(fd));
}
static void name_flags(int fd) {
  char name[16];
  snprintf(name, sizeof name, "%d", fd);
  detail_format(name, "%o", (unsigned)fcntl(fd, F_GETFL));
}

static void descriptors(char** unused) {
  (void)unused;
  list_begin("open");
  const int count = for_each_descriptor(list_descriptor);
  list_end();
  object_begin("kinds");
  (void)for_each_descriptor(name_kind);
  object_end();
  object_begin("flags");
  (void)for_each_descriptor(name_flags);
  object_end();
  detail_number("count", count);
  report(0);
}

static void cwd(char** unused) {
  (void)unused;
  char path[4096];
  const char* known = getcwd(path, sizeof path);
  detail_text("cwd", known);
  report(known == NULL ? -1 : 0);
}

static void environment(char** unused) {
  (void)unused;
  static char storage[kMostNames][128];
  static char* names[kMostNames];
  int count = 0;
  for (char** at = environ; *at != NULL; ++at, ++count) {
    if (count >= kMostNames) continue;
    names[count] = storage[count];
    snprintf(storage[count], sizeof storage[count], "%.*s", (int)strcspn(*at, "="), *at);
  }
  const int kept = count < kMostNames ? count : kMostNames;
  qsort(names, (size_t)kept, sizeof *names, compare_texts);
  list_begin("names");
  for (int i = 0; i < kept; ++i) list_text(names[i]);
  list_end();
  detail_number("count", count);
  report(0);
}

static void environment_value(char** name) {
  const char* value = getenv(name[0]);
  detail_text("value", value);
  errno = ENOENT;
  report(value == NULL ? -1 : 0);
}

static void environment_find(char** needle) {
  for (char** at = environ; *at != NULL; ++at) {
    if (strstr(*at, needle[0]) == NULL) continue;
    detail_bytes("name", *at, strcspn(*at, "="));
    report(0);
    return;
  }
  errno = ENOENT;
  report(-1);
}

static void keyring(char** unused) {
  (void)unused;
  char description[256];
  const long serial = syscall(SYS_keyctl, 0L, -3L, 0L);
  if (serial >= 0) {
    detail_number("session", serial);
    const long size = syscall(SYS_keyctl, 6L, serial, description, sizeof description);
    if (size > 0) detail_text("description", description);
  }
  report(serial);
}

static void host(char** unused) {
  (void)unused;
  struct utsname names;
  const int result = uname(&names);
  detail_text("hostname", names.nodename);
  detail_text("domainname", names.domainname);
  detail_text("machine", names.machine);
  detail_text("sysname", names.sysname);
  report(result);
}

static void terminal(char** unused) {
  (void)unused;
  struct winsize size = {0};
  int which = -1;
  list_begin("terminals");
  for (int fd = 0; fd < 3; ++fd) {
    if (!isatty(fd)) continue;
    list_number(fd);
    which = fd;
  }
  list_end();
  if (which >= 0 && ioctl(which, TIOCGWINSZ, &size) == 0) {
    detail_number("rows", size.ws_row);
    detail_number("columns", size.ws_col);
  }
  const int own = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
  detail_flag("controlling", own >= 0);
  if (own >= 0) close(own);
  report(0);
}

static void arguments(char** unused) {
  (void)unused;
  list_begin("argv");
  for (char** at = remaining; *at != NULL; ++at) list_text(*at);
  list_end();
  report(0);
}

// What a careless program leaves to those that it starts; the rest of the line is one of them.
static void set_all(char** unused) {
  (void)unused;
  const struct rlimit odd = {77, 77}, small = {1 << 20, 1 << 20};
  cpu_set_t one;
  sigset_t blocked;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigaddset(&blocked, SIGTERM);
  (void)umask(0);
  (void)sigprocmask(SIG_BLOCK, &blocked, NULL);
  for (int i = 1; i < 32; ++i) {
    if (i != SIGCHLD) (void)signal(i, SIG_IGN);
  }
  (void)setpriority(PRIO_PROCESS, 0, 7);
  (void)setrlimit(RLIMIT_NOFILE, &odd);
  (void)setrlimit(RLIMIT_STACK, &small);
  (void)setrlimit(RLIMIT_MEMLOCK, &small);
  (void)sched_setaffinity(0, sizeof one, &one);
  (void)prctl(PR_SET_TIMERSLACK, 77777UL, 0, 0, 0);
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  (void)syscall(SYS_ioprio_set, 1L, 0L, 3L << 13);
  (void)syscall(SYS_personality, 0x0040000L);
  const int fd = open("/", O_RDONLY | O_DIRECTORY);
  if (fd >= 0 && fd != 50) (void)dup2(fd, 50);
  if (remaining[0] == NULL) {
    report_error("no program to run");
    return;
  }
  (void)execvp(remaining[0], remaining);
  report(-1);
}

static void every(char** unused);

struct attempt attempts[] = {{"every", 0, every},
                             {"ids", 0, ids},
                             {"groups", 0, groups},
                             {"user", 0, user},
                             {"uid-map", 0, uid_map},
                             {"capabilities", 0, capabilities},
                             {"confinement", 0, confinement},
                             {"rlimits", 0, rlimits},
                             {"nice", 0, nice_value},
                             {"ioprio", 0, io_priority},
                             {"scheduler", 0, scheduler},
                             {"affinity", 0, affinity},
                             {"timerslack", 0, timer_slack},
                             {"personality", 0, personality_bits},
                             {"oom-score-adj", 0, oom_score},
                             {"securebits", 0, secure_bits},
                             {"umask", 0, umask_value},
                             {"session", 0, session},
                             {"signals", 0, signals},
                             {"descriptors", 0, descriptors},
                             {"cwd", 0, cwd},
                             {"environment", 0, environment},
                             {"keyring", 0, keyring},
                             {"process", 0, process_attributes},
                             {"host", 0, host},
                             {"terminal", 0, terminal},
                             // From here on not part of `every`.
                             {"environment-value", 1, environment_value},
                             {"environment-find", 1, environment_find},
                             {"arguments", kTheRest, arguments},
                             {"set-all", kTheRest, set_all},
                             {0}};

static void every(char** unused) {
  for (struct attempt* at = attempts + 1; at->run != environment_value; ++at) {
    rename_line(at->name);
    at->run(unused);
  }
}
