// Processes: many, left behind, stubborn; and the ways in which a program can end.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

enum { kMostChildren = 4096, kChildMs = 60000 };

static void report_made(long long made, long long wanted) {
  const int failure = errno;
  detail_number("made", made);
  errno = failure;
  report(made == wanted ? 0 : -1);
}

static void many(char** count) {
  static pid_t children[kMostChildren];
  const long long wanted = number(count[0]);
  long long made = 0;
  for (; made < wanted && made < kMostChildren; ++made) {
    children[made] = fork();
    if (children[made] < 0) break;
    if (children[made] == 0) {
      sleep_ms(kChildMs);
      _exit(0);
    }
  }
  report_made(made, wanted);
  for (long long i = 0; i < made; ++i) kill(children[i], SIGKILL);
  while (wait(NULL) > 0) {
  }
}

static void* wait_for_end(void* unused) {
  sleep_ms(kChildMs);
  return unused;
}

static void threads(char** count) {
  const long long wanted = number(count[0]);
  long long made = 0;
  int failure = 0;
  for (; made < wanted && made < kMostChildren && failure == 0; ++made) {
    pthread_t thread;
    failure = pthread_create(&thread, NULL, wait_for_end, NULL);
    if (failure != 0) break;
  }
  errno = failure;
  report_made(made, wanted);
}

// Counts in shared order through a pipe: each generation writes a byte.
static void chain(char** count) {
  const long long wanted = number(count[0]);
  int alive[2];
  if (pipe(alive) != 0) {
    report_error("no pipe");
    return;
  }
  const pid_t first = fork();
  if (first == 0) {
    for (long long i = 0; i < wanted; ++i) {
      (void)!write(alive[1], "x", 1);
      if (i + 1 < wanted && fork() != 0) _exit(0);
    }
    _exit(0);
  }
  close(alive[1]);
  long long made = 0;
  for (char byte; first > 0 && read(alive[0], &byte, 1) == 1;) ++made;
  if (first > 0) waitpid(first, NULL, 0);
  errno = EAGAIN;
  report_made(made, wanted);
}

static void fast(char** count) {
  const long long wanted = number(count[0]);
  long long made = 0;
  for (; made < wanted; ++made) {
    const pid_t child = fork();
    if (child < 0) break;
    if (child == 0) _exit(0);
    waitpid(child, NULL, 0);
  }
  report_made(made, wanted);
}

// Every process makes others as long as there are fewer than so many in all, or the kernel refuses;
// none ends by itself. `made` counts those that were ever made.
static void swarm(char** count) {
  const int wanted = (int)number(count[0]);
  atomic_int* made =
      mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) {
    report_error("no shared memory");
    return;
  }
  report(0);
  signal(SIGCHLD, SIG_IGN);
  for (const long long end = now_ms(CLOCK_MONOTONIC) + kChildMs; now_ms(CLOCK_MONOTONIC) < end;) {
    if (atomic_fetch_add(made, 1) >= wanted || fork() < 0) sleep_ms(1);
  }
}

static void background(char** milliseconds) {
  const long long stay = number(milliseconds[0]);
  const pid_t child = fork();
  if (child == 0) {
    sleep_ms(stay);
    _exit(0);
  }
  detail_number("pid", child);
  report(child);
}

// A process without a parent, in a session of its own; its number, or 0 in it.
static pid_t leave_behind(int keep_outputs) {
  int told[2];
  pid_t pid = -1;
  if (pipe(told) != 0) return -1;
  const pid_t between = fork();
  if (between == 0) {
    (void)setsid();
    const pid_t last = fork();
    if (last != 0) {
      (void)!write(told[1], &last, sizeof last);
      _exit(0);
    }
    for (int fd = keep_outputs ? 3 : 0; fd < 1024; ++fd) close(fd);
    if (keep_outputs) close(0);
    return 0;
  }
  if (between > 0 && read(told[0], &pid, sizeof pid) != sizeof pid) pid = -1;
  if (between > 0) waitpid(between, NULL, 0);
  close(told[0]);
  close(told[1]);
  return pid;
}

static void report_left_behind(pid_t pid) {
  detail_number("pid", pid);
  report(pid);
}

static void daemonise(char** milliseconds) {
  const long long stay = number(milliseconds[0]);
  const pid_t pid = leave_behind((int)current->number);
  if (pid == 0) {
    sleep_ms(stay);
    _exit(0);
  }
  report_left_behind(pid);
}

static void daemon_writing(char** arguments) {
  const long long after = number(arguments[0]);
  const pid_t pid = leave_behind(1);
  if (pid == 0) {
    sleep_ms(after);
    (void)write_all(1, arguments[1], strlen(arguments[1]));
    _exit(0);
  }
  report_left_behind(pid);
}

static void late_file(char** arguments) {
  const long long after = number(arguments[0]);
  const pid_t pid = leave_behind(0);
  if (pid == 0) {
    sleep_ms(after);
    (void)open(arguments[1], O_WRONLY | O_CREAT, 0600);
    _exit(0);
  }
  report_left_behind(pid);
}

static void stay(char** milliseconds) {
  const long long how_long = number(milliseconds[0]);
  detail_number("pid", getpid());
  report(0);
  sleep_ms(how_long);
}

static void exit_with(char** code) {
  const int status = (int)number(code[0]);
  report(0);
  _exit(status);
}

static void* end_process(void* status) {
  sleep_ms(50);
  _exit(*(int*)status);
}

static void thread_exit(char** code) {
  static int status;
  pthread_t thread;
  status = (int)number(code[0]);
  const int failure = pthread_create(&thread, NULL, end_process, &status);
  errno = failure;
  report(failure == 0 ? 0 : -1);
  if (failure == 0) pthread_exit(NULL);
}

static void* execute_this(void* before) {
  char program[] = "/proc/self/exe", first[] = "same-pid";
  char* const arguments[] = {program, first, before, NULL};
  (void)execv(program, arguments);
  report(-1);
  _exit(1);
}

// Its line is printed by the program that it becomes.
static void exec_from_thread(char** unused) {
  (void)unused;
  static char before[16];
  pthread_t thread;
  snprintf(before, sizeof before, "%d", getpid());
  errno = pthread_create(&thread, NULL, execute_this, before);
  if (errno != 0) {
    report(-1);
    return;
  }
  pthread_join(thread, NULL);
}

static void same_pid(char** before) {
  detail_number("pid", getpid());
  errno = ESRCH;
  report(number(before[0]) == getpid() ? 0 : -1);
}

static void zombies(char** count) {
  const long long wanted = number(count[0]);
  long long made = 0;
  for (; made < wanted; ++made) {
    const pid_t child = fork();
    if (child < 0) break;
    if (child == 0) _exit(0);
  }
  report_made(made, wanted);
}

struct attempt attempts[] = {{"fork", 1, many},
                             {"threads", 1, threads},
                             {"chain", 1, chain},
                             {"fast", 1, fast},
                             {"swarm", 1, swarm},
                             {"background", 1, background},
                             {"daemon", 1, daemonise, .number = 0},
                             {"daemon-holding", 1, daemonise, .number = 1},
                             {"daemon-writing", 2, daemon_writing},
                             {"late-file", 2, late_file},
                             {"stay", 1, stay},
                             {"exit", 1, exit_with},
                             {"thread-exit", 1, thread_exit},
                             {"exec-from-thread", 0, exec_from_thread},
                             {"same-pid", 1, same_pid},
                             {"zombies", 1, zombies},
                             {0}};
