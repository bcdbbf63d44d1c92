// Memory of every kind, in amounts that the command line bounds.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

enum { kStep = 1 << 20, kMostChildren = 256, kMostPipes = 1024 };

// Writes to every page.
static long touch_pages(volatile char* from, long long size, long long* touched) {
  for (*touched = 0; *touched < size; *touched += 4096) from[*touched] = 1;
  *touched = size;
  return 0;
}

static long map_and_touch(long long size, int flags, int fd, long long* touched) {
  *touched = 0;
  char* at = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (at == MAP_FAILED) return -1;
  return touch_pages(at, size, touched);
}

static long private_memory(long long size, long long* touched) {
  return map_and_touch(size, MAP_PRIVATE | MAP_ANONYMOUS, -1, touched);
}

static void touch(char** size) {
  long long touched;
  const long result = private_memory(number(size[0]), &touched);
  detail_number("bytes", touched);
  report(result);
}

static void touch_hold(char** arguments) {
  touch(arguments);
  sleep_ms(number(arguments[1]));
}

// Addresses without memory behind them, but for one page.
static void reserve(char** size) {
  const size_t bytes = (size_t)number(size[0]);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  volatile char* at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (at != MAP_FAILED) at[0] = 1;
  report(at == MAP_FAILED ? -1 : 0);
}

static void locked(char** size) {
  const size_t bytes = (size_t)number(size[0]);
  char* at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const long result = at == MAP_FAILED ? -1 : mlock(at, bytes);
  detail_number("bytes", result == 0 ? (long long)bytes : 0);
  report(result);
}

static void child(char** size) {
  const long long bytes = number(size[0]);
  const pid_t started = fork();
  if (started == 0) {
    long long touched;
    _exit(private_memory(bytes, &touched) == 0 ? 0 : 1);
  }
  int status = 0;
  if (started > 0) waitpid(started, &status, 0);
  if (started > 0 && WIFSIGNALED(status)) detail_number("signal", WTERMSIG(status));
  if (started > 0 && WIFEXITED(status)) detail_number("status", WEXITSTATUS(status));
  report(started);
}

// All of them hold what they have until the last has it.
static void children(char** arguments) {
  const long long count = number(arguments[0]), bytes = number(arguments[1]);
  pid_t started[kMostChildren];
  int ready[2], go[2], made = 0, killed = 0, failed = 0;
  if (pipe(ready) != 0 || pipe(go) != 0) {
    report_error("no pipe");
    return;
  }
  for (; made < count && made < kMostChildren; ++made) {
    started[made] = fork();
    if (started[made] < 0) break;
    if (started[made] > 0) continue;
    long long touched;
    char byte = private_memory(bytes, &touched) == 0 ? 'y' : 'n';
    close(ready[0]);
    close(go[1]);
    (void)!write(ready[1], &byte, 1);
    close(ready[1]);
    (void)!read(go[0], &byte, 1);  // Ends when the parent closes its end.
    _exit(byte == 'y' ? 0 : 1);
  }
  close(ready[1]);
  for (char byte; read(ready[0], &byte, 1) == 1;) {
  }
  close(go[1]);
  for (int i = 0; i < made; ++i) {
    int status = 0;
    waitpid(started[i], &status, 0);
    killed += WIFSIGNALED(status);
    failed += WIFEXITED(status) && WEXITSTATUS(status) != 0;
  }
  detail_number("made", made);
  detail_number("killed", killed);
  detail_number("failed", failed);
  report(0);
}

// ---- Memory that looks like files.

static void shared(char** size) {
  long long touched;
  const long result = map_and_touch(number(size[0]), MAP_SHARED | MAP_ANONYMOUS, -1, &touched);
  detail_number("bytes", touched);
  report(result);
}

static void system_v(char** size) {
  const long long bytes = number(size[0]);
  const int segment = shmget(IPC_PRIVATE, (size_t)bytes, IPC_CREAT | 0600);
  if (segment < 0) {
    report(-1);
    return;
  }
  char* at = shmat(segment, NULL, 0);
  const int failure = errno;
  shmctl(segment, IPC_RMID, NULL);  // It lasts as long as it is attached.
  long long touched = 0;
  errno = failure;
  const long result = (long)at == -1 ? -1 : touch_pages(at, bytes, &touched);
  detail_number("bytes", touched);
  report(result);
}

// Writes so many bytes; how many it were.
static long long fill(int fd, long long size) {
  static char block[kStep];
  long long written = 0;
  memset(block, 1, sizeof block);
  signal(SIGXFSZ, SIG_IGN);
  while (written < size) {
    const long long left = size - written;
    const ssize_t part = write(fd, block, left < kStep ? (size_t)left : kStep);
    if (part <= 0) break;
    written += part;
  }
  return written;
}

static void fill_and_report(int fd, long long size) {
  if (fd < 0) {
    report(-1);
    return;
  }
  errno = 0;
  const long long written = fill(fd, size);
  detail_number("bytes", written);
  report(written == size ? 0 : -1);
  close(fd);
}

static void memfd(char** size) {
  fill_and_report((int)syscall(SYS_memfd_create, "palmshed-probe", 0L), number(size[0]));
}

static int unnamed_file(const char* directory) {
  char path[4096];
  snprintf(path, sizeof path, "%s/palmshed-probe-%d", directory, getpid());
  const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0) unlink(path);
  return fd;
}

static void tmpfs(char** size) { fill_and_report(unnamed_file("/dev/shm"), number(size[0])); }

// A file that is there when this program has ended.
static void leave(char** arguments) {
  fill_and_report(open(arguments[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0600), number(arguments[1]));
}

static void tmp(char** size) {
  const char* directory = getenv("TMPDIR");
  fill_and_report(unnamed_file(directory == NULL ? "/tmp" : directory), number(size[0]));
}

static void cache(char** size) {
  static char block[kStep];
  const long long bytes = number(size[0]);
  const int fd = unnamed_file(".");
  if (fd < 0 || fill(fd, bytes) != bytes) {
    report(-1);
    return;
  }
  lseek(fd, 0, SEEK_SET);
  long long got = 0;
  for (ssize_t part; (part = read(fd, block, sizeof block)) > 0;) got += part;
  detail_number("bytes", got);
  report(got == bytes ? 0 : -1);
  close(fd);
}

static void pipes(char** count) {
  static char block[1 << 16];
  const long long wanted = number(count[0]);
  long long bytes = 0, made = 0;
  for (; made < wanted && made < kMostPipes; ++made) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) break;
    for (ssize_t part; (part = write(ends[1], block, sizeof block)) > 0;) bytes += part;
  }
  detail_number("made", made);
  detail_number("bytes", bytes);
  report(made == wanted ? 0 : -1);
}

struct attempt attempts[] = {{"touch", 1, touch},
                             {"touch-hold", 2, touch_hold},
                             {"child", 1, child},
                             {"children", 2, children},
                             {"shared", 1, shared},
                             {"memfd", 1, memfd},
                             {"tmpfs", 1, tmpfs},
                             {"tmp", 1, tmp},
                             {"cache", 1, cache},
                             {"locked", 1, locked},
                             {"pipes", 1, pipes},
                             {"reserve", 1, reserve},
                             {"leave", 2, leave},
                             {"system-v", 1, system_v},
                             {0}};
