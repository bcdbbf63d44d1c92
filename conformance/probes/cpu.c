// CPU time, spent by one thread, by many, by children of every kind; bounded by the command line.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

enum { kMost = 512 };

static volatile unsigned long sink;

// Until the clock, which must count CPU time, has moved on so far.
static void spend(int clock, long long milliseconds) {
  const long long end = now_ms(clock) + milliseconds;
  while (now_ms(clock) < end) {
    for (int i = 0; i < 20000; ++i) sink += (unsigned long)i;
  }
}

static void spend_in_child(long long milliseconds) {
  spend(CLOCK_PROCESS_CPUTIME_ID, milliseconds);
  _exit(0);
}

// Of this process and the children it waited for.
static void report_used(long result) {
  long long used = 0;
  for (int i = 0; i < 2; ++i) {
    struct rusage usage;
    getrusage(i == 0 ? RUSAGE_SELF : RUSAGE_CHILDREN, &usage);
    used += (long long)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
            (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
  }
  detail_number("cpuMs", used);
  report(result);
}

static void burn(char** milliseconds) {
  spend(CLOCK_PROCESS_CPUTIME_ID, number(milliseconds[0]));
  report_used(0);
}

// Whatever a process can do against being told to stop.
static void burn_ignoring(char** milliseconds) {
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_IGN);
  burn(milliseconds);
}

static void* burn_in_thread(void* milliseconds) {
  spend(CLOCK_THREAD_CPUTIME_ID, *(long long*)milliseconds);
  return NULL;
}

static void threads(char** arguments) {
  pthread_t started[kMost];
  long long count = number(arguments[0]), milliseconds = number(arguments[1]), made = 0;
  while (made < count && made < kMost &&
         pthread_create(&started[made], NULL, burn_in_thread, &milliseconds) == 0) {
    ++made;
  }
  for (long long i = 0; i < made; ++i) pthread_join(started[i], NULL);
  detail_number("made", made);
  errno = EAGAIN;
  report_used(made == count ? 0 : -1);
}

static void children(char** arguments) {
  const long long count = number(arguments[0]), milliseconds = number(arguments[1]);
  const int at_once = (int)current->number;
  long long made = 0;
  for (; made < count; ++made) {
    const pid_t child = fork();
    if (child < 0) break;
    if (child == 0) spend_in_child(milliseconds);
    if (!at_once) waitpid(child, NULL, 0);
  }
  while (wait(NULL) > 0) {
  }
  detail_number("made", made);
  errno = EAGAIN;
  report_used(made == count ? 0 : -1);
}

// Nobody waits for them: their time is added to nobody's.
static void ignored(char** arguments) {
  const long long count = number(arguments[0]), milliseconds = number(arguments[1]);
  long long made = 0;
  signal(SIGCHLD, SIG_IGN);
  for (; made < count; ++made) {
    const pid_t child = fork();
    if (child < 0) break;
    if (child == 0) spend_in_child(milliseconds);
  }
  while (wait(NULL) > 0 || errno != ECHILD) {
  }
  detail_number("started", made);
  errno = EAGAIN;
  report_used(made == count ? 0 : -1);
}

static void orphans(char** arguments) {
  const long long count = number(arguments[0]), milliseconds = number(arguments[1]);
  int alive[2];
  if (pipe(alive) != 0) {
    report_error("no pipe");
    return;
  }
  long long made = 0;
  for (; made < count; ++made) {
    const pid_t between = fork();
    if (between < 0) break;
    if (between == 0) {
      (void)setsid();
      if (fork() != 0) _exit(0);
      spend_in_child(milliseconds);
    }
    waitpid(between, NULL, 0);
  }
  close(alive[1]);
  char byte;
  (void)!read(alive[0], &byte, 1);  // Ends with the last that holds the other end.
  detail_number("started", made);
  errno = EAGAIN;
  report_used(made == count ? 0 : -1);
}

static void idle(char** milliseconds) {
  sleep_ms(number(milliseconds[0]));
  report_used(0);
}

static void measure(char** milliseconds) {
  const long long wall = number(milliseconds[0]);
  const long long before = now_ms(CLOCK_PROCESS_CPUTIME_ID);
  spend(CLOCK_MONOTONIC, wall);
  const long long used = now_ms(CLOCK_PROCESS_CPUTIME_ID) - before;
  detail_number("share", wall > 0 ? used * 100 / wall : 0);
  report_used(0);
}

struct attempt attempts[] = {{"burn", 1, burn},
                             {"burn-ignoring", 1, burn_ignoring},
                             {"threads", 2, threads},
                             {"children", 2, children, .number = 1},
                             {"sequence", 2, children, .number = 0},
                             {"ignored", 2, ignored},
                             {"orphans", 2, orphans},
                             {"sleep", 1, idle},
                             {"measure", 1, measure},
                             {0}};
