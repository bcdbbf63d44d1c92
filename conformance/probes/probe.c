#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "line.h"

const struct attempt* current;
char** remaining;

long in_child(long (*act)(void*), void* argument) {
  long answer[2] = {-1, ECANCELED};
  int report_pipe[2];
  if (pipe(report_pipe) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    errno = 0;
    answer[0] = act(argument);
    answer[1] = errno;
    _exit(write_all(report_pipe[1], answer, sizeof answer) == 0 ? 0 : 1);
  }
  close(report_pipe[1]);
  int status = 0;
  if (child > 0) {
    if (read(report_pipe[0], answer, sizeof answer) != sizeof answer) answer[0] = -1;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) detail_number("signal", WTERMSIG(status));
  } else {
    answer[1] = errno;
  }
  close(report_pipe[0]);
  errno = (int)answer[1];
  return answer[0];
}

static void usage(const char* about, const char* what) {
  dprintf(2, "%s: %s\n", what, about);
  exit(2);
}

long long number(const char* text) {
  char* end = NULL;
  errno = 0;
  const long long value = strtoll(text, &end, 10);
  if (*text == '\0' || *end != '\0' || errno != 0) usage("not a number", text);
  return value;
}

void sleep_ms(long long milliseconds) {
  struct timespec left = {.tv_sec = (time_t)(milliseconds / 1000),
                          .tv_nsec = (long)(milliseconds % 1000) * 1000000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

long long now_ms(int clock) {
  struct timespec now = {0};
  clock_gettime(clock, &now);
  return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int write_all(int fd, const void* bytes, size_t size) {
  const char* from = bytes;
  while (size > 0) {
    const ssize_t written = write(fd, from, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return -1;
    from += written;
    size -= (size_t)written;
  }
  return 0;
}

ssize_t read_file(const char* path, void* into, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return -1;
  size_t have = 0;
  ssize_t got = 0;
  while (have < size && (got = read(fd, (char*)into + have, size - have)) > 0) have += (size_t)got;
  const int failure = errno;
  close(fd);
  errno = failure;
  return got < 0 ? -1 : (ssize_t)have;
}

void report_content(int fd) {
  if (fd < 0) {
    report(-1);
    return;
  }
  char content[200];
  ssize_t size = read(fd, content, sizeof content);
  if (size < 0 && errno == EISDIR) size = 0;  // It could be opened, which is what counts.
  if (size >= 0) detail_bytes("content", content, (size_t)size);
  report(size);
  close(fd);
}

int contains(const void* bytes, size_t size, const char* needle) {
  return memmem(bytes, size, needle, strlen(needle)) != NULL;
}

int for_each_process(int (*each)(long pid, void* state), void* state) {
  DIR* directory = opendir("/proc");
  if (directory == NULL) return -1;
  int called = 0;
  for (struct dirent* entry; (entry = readdir(directory)) != NULL;) {
    char* end = NULL;
    const long pid = strtol(entry->d_name, &end, 10);
    if (*end != '\0' || pid <= 0) continue;
    ++called;
    if (each(pid, state) != 0) break;
  }
  closedir(directory);
  return called;
}

int compare_texts(const void* left, const void* right) {
  return strcmp(*(const char* const*)left, *(const char* const*)right);
}

static const struct attempt* find(const char* name) {
  for (const struct attempt* at = attempts; at->name != NULL; ++at) {
    if (strcmp(at->name, name) == 0) return at;
  }
  return NULL;
}

// Makes the attempt that `words` begin with and returns how many words it took.
static int make(char** words, int count) {
  current = find(words[0]);
  const char* label = words[0];
  char* equals = strchr(words[0], '=');
  if (current == NULL && equals != NULL) {
    *equals = '\0';
    current = find(equals + 1);
  }
  if (current == NULL) usage("no such attempt", equals == NULL ? words[0] : equals + 1);
  const int taken = current->arguments == kTheRest ? count - 1 : current->arguments;
  if (taken > count - 1) usage("too few arguments", current->name);
  line_begin(label, words + 1, taken);
  remaining = words + 1;
  current->run(words + 1);
  return taken + 1;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    for (const struct attempt* at = attempts; at->name != NULL; ++at) puts(at->name);
    return 0;
  }
  for (int at = 1; at < argc;) {
    at += make(argv + at, argc - at);
    if (at < argc && strcmp(argv[at], "--") != 0) usage("expected -- or the end", argv[at]);
    ++at;
  }
  return 0;
}
