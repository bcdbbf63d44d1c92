// Reaching files: by name, by link, by handle. What changes files is in files_changes.c, what goes
// by way of other processes and descriptors in files_routes.c.
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "probe.h"

enum { kHow = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, kMostNames = 1000 };

static const char kLink[] = "palmshed-probe-link";

void climb(char* into, size_t size, const char* from, const char* path) {
  size_t at = (size_t)snprintf(into, size, "%s", from);
  for (int i = 0; i < 64 && at + 4 < size; ++i) {
    memcpy(into + at, "../", 4);
    at += 3;
  }
  snprintf(into + at, size - at, "%s", path[0] == '/' ? path + 1 : path);
}

static void open_reading(char** paths) { report_content(open(paths[0], kHow)); }
static void open_writing(char** paths) {
  const int fd =
      open(paths[0], O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (int)current->number);
  report(fd);
  if (fd >= 0) close(fd);
}

static void open_at(char** paths) {
  char parent[kPathSize], name[kPathSize];
  snprintf(parent, sizeof parent, "%s", paths[0]);
  snprintf(name, sizeof name, "%s", paths[0]);
  const int directory = open(dirname(parent), O_DIRECTORY | O_PATH | O_CLOEXEC);
  if (directory < 0) {
    report(-1);
    return;
  }
  report_content(openat(directory, basename(name), kHow));
  close(directory);
}

static void open_at_2(char** paths) {
  const uint64_t how[3] = {kHow, 0, 0};
  report_content((int)syscall(SYS_openat2, AT_FDCWD, paths[0], how, sizeof how));
}

static void open_path(char** paths) {
  const int named = open(paths[0], O_PATH | O_CLOEXEC);
  if (named < 0) {
    report(-1);
    return;
  }
  char again[64];
  snprintf(again, sizeof again, "/proc/self/fd/%d", named);
  report_content(open(again, kHow));
  close(named);
}

static void dotdot(char** paths) {
  char path[kPathSize];
  climb(path, sizeof path, "", paths[0]);
  report_content(open(path, kHow));
}

// number: the process, 0 for this one, -1 for its parent.
static void proc_prefix(char* into, size_t size, const char* link) {
  if (current->number == 0) {
    snprintf(into, size, "/proc/self/%s/", link);
  } else {
    snprintf(into, size, "/proc/%ld/%s/", current->number > 0 ? current->number : (long)getppid(),
             link);
  }
}

static void proc_root(char** paths) {
  char path[kPathSize];
  proc_prefix(path, sizeof path, "root");
  const size_t prefix = strlen(path);
  snprintf(path + prefix, sizeof path - prefix, "%s", paths[0]);
  report_content(open(path, kHow));
}

static void proc_cwd(char** paths) {
  char prefix[64], path[kPathSize];
  proc_prefix(prefix, sizeof prefix, "cwd");
  climb(path, sizeof path, prefix, paths[0]);
  report_content(open(path, kHow));
}

static void report_link(long made) {
  if (made != 0) {
    report(-1);
    return;
  }
  report_content(open(kLink, kHow));
  unlink(kLink);
}

static void symbolic_link(char** paths) { report_link(symlink(paths[0], kLink)); }
static void hard_link(char** paths) { report_link(link(paths[0], kLink)); }

static void hard_link_descriptor(char** paths) {
  const int named = open(paths[0], O_PATH | O_CLOEXEC);
  if (named < 0) {
    report(-1);
    return;
  }
  char from[64];
  snprintf(from, sizeof from, "/proc/self/fd/%d", named);
  report_link(linkat(AT_FDCWD, from, AT_FDCWD, kLink, AT_SYMLINK_FOLLOW));
  close(named);
}

static void by_handle(char** paths) {
  struct {
    uint32_t bytes;
    int32_t type;
    unsigned char handle[128];
  } handle = {.bytes = sizeof handle.handle};
  int mount = 0;
  if (syscall(SYS_name_to_handle_at, AT_FDCWD, paths[0], &handle, &mount, 0) != 0) {
    report(-1);
    return;
  }
  const int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  report_content((int)syscall(SYS_open_by_handle_at, root, &handle, kHow));
  close(root);
}

static void status(char** paths) {
  struct stat facts;
  if (lstat(paths[0], &facts) != 0) {
    report(-1);
    return;
  }
  detail_text("type", S_ISREG(facts.st_mode)    ? "file"
                      : S_ISDIR(facts.st_mode)  ? "directory"
                      : S_ISLNK(facts.st_mode)  ? "symlink"
                      : S_ISCHR(facts.st_mode)  ? "char"
                      : S_ISBLK(facts.st_mode)  ? "block"
                      : S_ISFIFO(facts.st_mode) ? "fifo"
                                                : "socket");
  detail_format("mode", "%04o", facts.st_mode & 07777);
  detail_number("uid", facts.st_uid);
  detail_number("gid", facts.st_gid);
  detail_number("size", facts.st_size);
  report(0);
}

static void exists(char** paths) { report(access(paths[0], F_OK)); }

static void read_link(char** paths) {
  char target[kPathSize];
  const ssize_t size = readlink(paths[0], target, sizeof target);
  if (size >= 0) detail_bytes("target", target, (size_t)size);
  report(size);
}

static void list(char** paths) {
  static char storage[kMostNames][256];
  static char* names[kMostNames];
  DIR* directory = opendir(paths[0]);
  if (directory == NULL) {
    report(-1);
    return;
  }
  int count = 0;
  for (struct dirent* entry; (entry = readdir(directory)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (count < kMostNames) {
      names[count] = storage[count];
      memcpy(storage[count], entry->d_name, strlen(entry->d_name) + 1);
    }
    ++count;
  }
  closedir(directory);
  const int kept = count < kMostNames ? count : kMostNames;
  qsort(names, (size_t)kept, sizeof *names, compare_texts);
  list_begin("names");
  for (int i = 0; i < kept; ++i) list_text(names[i]);
  list_end();
  detail_number("count", count);
  report(0);
}

static void file_system(char** paths) {
  static const struct {
    long flag;
    const char* name;
  } kFlags[] = {{1, "ro"}, {2, "nosuid"}, {4, "nodev"}, {8, "noexec"}};
  struct statfs facts;
  if (statfs(paths[0], &facts) != 0) {
    report(-1);
    return;
  }
  list_begin("flags");
  for (size_t i = 0; i < 4; ++i) {
    if (((long)facts.f_flags & kFlags[i].flag) != 0) list_text(kFlags[i].name);
  }
  list_end();
  detail_format("type", "%lx", (unsigned long)facts.f_type);
  report(0);
}

struct attempt attempts[] = {{"open", 1, open_reading},
                             {"openat", 1, open_at},
                             {"openat2", 1, open_at_2},
                             {"open-path", 1, open_path},
                             {"open-for-writing", 1, open_writing},
                             {"open-for-append", 1, open_writing, .number = O_APPEND},
                             {"dotdot", 1, dotdot},
                             {"proc-self-root", 1, proc_root, .number = 0},
                             {"proc-1-root", 1, proc_root, .number = 1},
                             {"proc-parent-root", 1, proc_root, .number = -1},
                             {"proc-1-cwd", 1, proc_cwd, .number = 1},
                             {"proc-parent-cwd", 1, proc_cwd, .number = -1},
                             {"every-root", 1, every_root},
                             {"every-route", 1, every_route},
                             {"every-descriptor", 1, every_descriptor},
                             {"symlink", 1, symbolic_link},
                             {"hardlink", 1, hard_link},
                             {"hardlink-descriptor", 1, hard_link_descriptor},
                             {"handle", 1, by_handle},
                             {"stat", 1, status},
                             {"access", 1, exists},
                             {"readlink", 1, read_link},
                             {"list", 1, list},
                             {"statfs", 1, file_system},
                             {"create", 1, create_file},
                             {"mkdir", 1, make_directory},
                             {"mkfifo", 1, make_fifo},
                             {"tmpfile", 1, make_temporary},
                             {"mknod-char", 1, make_node, .number = 0020000, .other = 1 << 8 | 3},
                             {"mknod-block", 1, make_node, .number = 0060000, .other = 7 << 8},
                             {"rename", 2, rename_file, .number = 0},
                             {"rename-exchange", 2, rename_file, .number = 2},
                             {"exchange-until", 3, exchange_until},
                             {"unlink", 1, unlink_file},
                             {"chmod", 1, change_mode},
                             {"chown", 1, change_owner},
                             {"utimens", 1, change_times},
                             {"truncate", 1, truncate_file},
                             {"setxattr", 1, set_attribute},
                             {"chmod-set-id", 1, make_set_id},
                             {"bind-mount", 2, bind_mount},
                             {"bind-mount-new", 2, bind_mount_new},
                             {"remount", 1, remount},
                             {"inotify", 1, inotify},
                             {"fanotify", 1, fanotify},
                             {"write", 2, write_file},
                             {"allocate", 2, preallocate},
                             {"many", 2, make_many},
                             {"keep-many", 2, keep_many},
                             {"fill-deleted", 3, fill_deleted},
                             {"fill-unnamed", 3, fill_unnamed},
                             {"fill-at-once", 3, fill_at_once},
                             {"execute", 1, execute},
                             {"execute-memory", 0, execute_memory},
                             {"execute-written", 0, execute_written},
                             {"map-writable-executable", 0, map_writable_executable},
                             {"descriptors", 0, descriptors},
                             {"descriptor-escape", 1, descriptor_escape},
                             {"lock", 1, lock_file},
                             {0}};
