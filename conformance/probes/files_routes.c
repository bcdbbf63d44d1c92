// Ways to a file that lead through other processes and through descriptors.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "probe.h"

enum { kHow = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, kMostDescriptors = 4096 };

struct search {
  const char* what;  // The path or the bytes wanted.
  int tried, found;
  long pid;
  char route[kPathSize];
};

static int opens(struct search* search, const char* route) {
  ++search->tried;
  const int fd = open(route, kHow);
  if (fd < 0) return 0;
  close(fd);
  search->found = 1;
  snprintf(search->route, sizeof search->route, "%s", route);
  return 1;
}

static void report_search(struct search* search, int processes) {
  detail_number("tried", search->tried);
  if (!search->found) {
    if (processes >= 0) errno = ENOENT;  // Else why /proc could not be read.
    report(-1);
    return;
  }
  detail_number("pid", search->pid);
  detail_text("route", search->route);
  report_content(open(search->route, kHow));
}

static int through_root(long pid, void* state) {
  struct search* search = state;
  char route[kPathSize];
  snprintf(route, sizeof route, "/proc/%ld/root%s", pid, search->what);
  search->pid = pid;
  return opens(search, route);
}

void every_root(char** paths) {
  struct search search = {.what = paths[0]};
  report_search(&search, for_each_process(through_root, &search));
}

// Calls `each` with the path of every descriptor of a process that can be listed.
static int for_each_descriptor(long pid, int (*each)(const char* path, struct search*),
                               struct search* search) {
  char path[512];
  snprintf(path, sizeof path, "/proc/%ld/fd", pid);
  DIR* directory = opendir(path);
  if (directory == NULL) return 0;
  int stop = 0;
  for (struct dirent* entry; !stop && (entry = readdir(directory)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "/proc/%ld/fd/%s", pid, entry->d_name);
    stop = each(path, search);
  }
  closedir(directory);
  return stop;
}

static int climb_from_descriptor(const char* path, struct search* search) {
  char prefix[600], route[kPathSize];
  snprintf(prefix, sizeof prefix, "%s/", path);
  climb(route, sizeof route, prefix, search->what);
  return opens(search, route);
}

static int every_way(long pid, void* state) {
  struct search* search = state;
  if (through_root(pid, state) != 0) return 1;
  char prefix[64], route[kPathSize];
  snprintf(prefix, sizeof prefix, "/proc/%ld/cwd/", pid);
  climb(route, sizeof route, prefix, search->what);
  if (opens(search, route) != 0) return 1;
  snprintf(route, sizeof route, "/proc/%ld/task/%ld/root%s", pid, pid, search->what);
  if (opens(search, route) != 0) return 1;
  return for_each_descriptor(pid, climb_from_descriptor, search);
}

void every_route(char** paths) {
  struct search search = {.what = paths[0]};
  report_search(&search, for_each_process(every_way, &search));
}

static int holds(const char* path, struct search* search) {
  static char content[1 << 16];
  struct stat facts;
  ++search->tried;
  const int fd = open(path, kHow);
  if (fd < 0) return 0;
  const ssize_t size =
      fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) ? read(fd, content, sizeof content) : -1;
  close(fd);
  if (size <= 0 || !contains(content, (size_t)size, search->what)) return 0;
  search->found = 1;
  snprintf(search->route, sizeof search->route, "%s", path);
  return 1;
}

static int descriptors_of(long pid, void* state) {
  ((struct search*)state)->pid = pid;
  return for_each_descriptor(pid, holds, state);
}

void every_descriptor(char** needle) {
  struct search search = {.what = needle[0]};
  report_search(&search, for_each_process(descriptors_of, &search));
}

void descriptors(char** unused) {
  (void)unused;
  list_begin("open");
  for (int fd = 0; fd < kMostDescriptors; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) continue;
    char path[64], target[256];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const ssize_t size = readlink(path, target, sizeof target - 1);
    target[size < 0 ? 0 : size] = '\0';
    object_begin(NULL);
    detail_number("fd", fd);
    detail_text("target", size < 0 ? NULL : target);
    object_end();
  }
  list_end();
  report(0);
}

void descriptor_escape(char** paths) {
  char path[kPathSize];
  climb(path, sizeof path, "", paths[0]);
  int tried = 0, reached = -1;
  for (int fd = 3; fd < kMostDescriptors && reached < 0; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) continue;
    ++tried;
    reached = openat(fd, path, kHow);
  }
  detail_number("tried", tried);
  if (reached < 0) errno = tried == 0 ? EBADF : ENOENT;
  report_content(reached);
}
