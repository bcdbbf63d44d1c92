// Making namespaces and entering other processes'. Everything happens in a child, since there is no
// way back. number is the flag; other tells how.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

static const struct kind {
  const char* name;
  long flag;
} kKinds[] = {{"user", 0x10000000},   {"mnt", 0x00020000}, {"pid", 0x20000000},
              {"net", 0x40000000},    {"ipc", 0x08000000}, {"uts", 0x04000000},
              {"cgroup", 0x02000000}, {"time", 0x00000080}};
enum { kKindCount = sizeof kKinds / sizeof *kKinds, kNewUser = 0x10000000 };

static long unshare_it(void* flags) { return syscall(SYS_unshare, *(long*)flags); }

static long end_child(long child) {
  if (child == 0) _exit(0);
  if (child > 0) waitpid((pid_t)child, NULL, 0);
  return child;
}

static long clone_it(void* flags) {
  // The flag of the time namespace lies within the bits that clone takes for a signal.
  return end_child(syscall(SYS_clone, *(long*)flags | SIGCHLD, 0L, 0L, 0L, 0L));
}

static long clone3_it(void* flags) {
  uint64_t request[8] = {(uint64_t)*(long*)flags, 0, 0, 0, SIGCHLD};
  return end_child(syscall(SYS_clone3, request, sizeof request));
}

static long (*const kWays[])(void*) = {unshare_it, clone_it, clone3_it};

static void make_new(char** unused) {
  (void)unused;
  long flags = current->number;
  report(in_child(kWays[current->other], &flags));
}

static void every_new(char** unused) {
  (void)unused;
  static const char* const kNames[] = {"unshare", "clone", "clone3"};
  for (int way = 0; way < 3; ++way) {
    for (int i = 0; i < kKindCount; ++i) {
      if (way == 1 && kKinds[i].flag == 0x80) continue;
      long flags = kKinds[i].flag;
      report_as(in_child(kWays[way], &flags), "%s-%s", kNames[way], kKinds[i].name);
      flags |= kNewUser;
      if (kKinds[i].flag == kNewUser) continue;
      report_as(in_child(kWays[way], &flags), "%s-user-%s", kNames[way], kKinds[i].name);
    }
  }
}

struct target {
  const char *pid, *kind;
  long flag;
};

static long enter_link(void* state) {
  const struct target* target = state;
  char path[96];
  snprintf(path, sizeof path, "/proc/%s/ns/%s", target->pid, target->kind);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  return fd < 0 ? -1 : syscall(SYS_setns, fd, target->flag);
}

static long enter_pidfd(void* state) {
  const struct target* target = state;
  const long fd = syscall(SYS_pidfd_open, number(target->pid), 0L);
  return fd < 0 ? -1 : syscall(SYS_setns, fd, target->flag);
}

static const char* kind_of(long flag) {
  for (int i = 0; i < kKindCount; ++i) {
    if (kKinds[i].flag == flag) return kKinds[i].name;
  }
  return "";
}

static void enter(char** pid) {
  struct target target = {pid[0], kind_of(current->number), current->number};
  report(in_child(current->other == 0 ? enter_link : enter_pidfd, &target));
}

static void every_setns(char** pid) {
  for (int i = 0; i < kKindCount; ++i) {
    struct target target = {pid[0], kKinds[i].name, kKinds[i].flag};
    report_as(in_child(enter_link, &target), "setns-%s", target.kind);
    report_as(in_child(enter_pidfd, &target), "setns-pidfd-%s", target.kind);
  }
}

static int put_file(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  const int result = fd < 0 ? -1 : write_all(fd, text, strlen(text));
  const int failure = errno;
  if (fd >= 0) close(fd);
  errno = failure;
  return result;
}

static long map_root_it(void* unused) {
  (void)unused;
  char map[32];
  snprintf(map, sizeof map, "0 %d 1", (int)getuid());
  if (unshare(kNewUser) != 0 || put_file("/proc/self/uid_map", map) != 0) return -1;
  return setuid(0);
}

static void map_root(char** unused) {
  (void)unused;
  report(in_child(map_root_it, NULL));
}

static long nested_mount_it(void* unused) {
  (void)unused;
  if (unshare(kNewUser | 0x00020000) != 0) return -1;
  return mount("none", ".", "tmpfs", 0, NULL);
}

static void nested_mount(char** unused) {
  (void)unused;
  report(in_child(nested_mount_it, NULL));
}

static void identifiers(char** unused) {
  (void)unused;
  long result = -1;
  for (int i = 0; i < kKindCount; ++i) {
    char path[64], link[64];
    snprintf(path, sizeof path, "/proc/self/ns/%s", kKinds[i].name);
    const ssize_t size = readlink(path, link, sizeof link);
    if (size < 0) continue;
    detail_bytes(kKinds[i].name, link, (size_t)size);
    result = 0;
  }
  report(result);
}

// In the kinds' order; a name, its flag, and what else is made with it.
#define WAYS(kind, flag)                                                              \
  {"unshare-" kind, 0, make_new, (flag), 0}, {"clone-" kind, 0, make_new, (flag), 1}, \
      {"clone3-" kind, 0, make_new, (flag), 2}
#define ENTER(kind, flag) \
  {"setns-" kind, 1, enter, (flag), 0}, {"setns-pidfd-" kind, 1, enter, (flag), 1}
#define KIND(kind, flag) WAYS(kind, flag), WAYS("user-" kind, (flag) | kNewUser), ENTER(kind, flag)

struct attempt attempts[] = {WAYS("user", kNewUser),
                             ENTER("user", kNewUser),
                             KIND("mnt", 0x00020000),
                             KIND("pid", 0x20000000),
                             KIND("net", 0x40000000),
                             KIND("ipc", 0x08000000),
                             KIND("uts", 0x04000000),
                             KIND("cgroup", 0x02000000),
                             {"unshare-time", 0, make_new, 0x80, 0},
                             {"clone3-time", 0, make_new, 0x80, 2},
                             {"unshare-user-time", 0, make_new, 0x80 | kNewUser, 0},
                             {"clone3-user-time", 0, make_new, 0x80 | kNewUser, 2},
                             ENTER("time", 0x80),
                             {"every-new", 0, every_new},
                             {"every-setns", 1, every_setns},
                             {"map-root", 0, map_root},
                             {"nested-mount", 0, nested_mount},
                             {"identifiers", 0, identifiers},
                             {0}};
