// Changing files: to what they are already, or with everything put back.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "files.h"
#include "probe.h"

static void report_and_close(int fd) {
  report(fd);
  if (fd >= 0) close(fd);
}

void create_file(char** paths) {
  const int fd = open(paths[0], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  report_and_close(fd);
  if (fd >= 0) unlink(paths[0]);
}

void make_directory(char** paths) {
  const int made = mkdir(paths[0], 0700);
  report(made);
  if (made == 0) rmdir(paths[0]);
}

void make_fifo(char** paths) {
  const int made = mkfifo(paths[0], 0600);
  report(made);
  if (made == 0) unlink(paths[0]);
}

void make_node(char** paths) {
  const int made = mknod(paths[0], (mode_t)current->number | 0600,
                         makedev((unsigned)current->other >> 8, (unsigned)current->other & 255));
  report(made);
  if (made == 0) unlink(paths[0]);
}

void make_temporary(char** paths) {
  report_and_close(open(paths[0], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
}

static long rename_flags(const char* from, const char* to, long flags) {
  return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
}

void rename_file(char** paths) {
  const long result = rename_flags(paths[0], paths[1], current->number);
  report(result);
  if (result == 0) (void)rename_flags(paths[1], paths[0], current->number);
}

void exchange_until(char** paths) {
  const long long end = now_ms(CLOCK_MONOTONIC) + number(paths[2]);
  long result = rename_flags(paths[0], paths[1], 2);
  report(result);
  while (result == 0 && now_ms(CLOCK_MONOTONIC) < end) {
    result = rename_flags(paths[0], paths[1], 2);
  }
}

void unlink_file(char** paths) { report(unlink(paths[0])); }

// What is there now, or a report of why that cannot be known.
static int facts_of(const char* path, struct stat* facts) {
  if (stat(path, facts) == 0) return 0;
  report(-1);
  return -1;
}

void change_mode(char** paths) {
  struct stat facts;
  if (facts_of(paths[0], &facts) == 0) report(chmod(paths[0], facts.st_mode & 07777));
}

void change_owner(char** paths) {
  struct stat facts;
  if (facts_of(paths[0], &facts) != 0) return;
  const int result = chown(paths[0], facts.st_uid, facts.st_gid);
  if (result != 0 && errno == EINVAL) {
    report_denied();  // The owner has no number in this user namespace.
  } else {
    report(result);
  }
}

void change_times(char** paths) {
  struct stat facts;
  if (facts_of(paths[0], &facts) != 0) return;
  const struct timespec same[2] = {facts.st_atim, facts.st_mtim};
  report(utimensat(AT_FDCWD, paths[0], same, 0));
}

void truncate_file(char** paths) {
  struct stat facts;
  if (facts_of(paths[0], &facts) != 0) return;
  const int result = truncate(paths[0], facts.st_size);
  report(result);
  const struct timespec same[2] = {facts.st_atim, facts.st_mtim};
  if (result == 0) (void)utimensat(AT_FDCWD, paths[0], same, 0);
}

void set_attribute(char** paths) {
  const int result = setxattr(paths[0], "user.palmshed", "x", 1, 0);
  report(result);
  if (result == 0) (void)removexattr(paths[0], "user.palmshed");
}

void make_set_id(char** paths) {
  const int fd = open(paths[0], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) {
    report_error("no file could be made");
    return;
  }
  struct stat facts = {0};
  const int result = fchmod(fd, 06755);
  const int failure = errno;
  fstat(fd, &facts);
  detail_format("mode", "%04o", facts.st_mode & 07777);
  errno = failure;
  report(result);
  close(fd);
  unlink(paths[0]);
}

void bind_mount(char** paths) {
  const int result = mount(paths[0], paths[1], NULL, MS_BIND | MS_REC, NULL);
  report(result);
  if (result == 0) umount2(paths[1], MNT_DETACH);
}

void bind_mount_new(char** paths) {
  const long tree = syscall(SYS_open_tree, AT_FDCWD, paths[0], 1L /* OPEN_TREE_CLONE */);
  if (tree < 0) {
    report(-1);
    return;
  }
  const long moved = syscall(SYS_move_mount, tree, "", AT_FDCWD, paths[1], 4L /* F_EMPTY_PATH */);
  report(moved);
  if (moved == 0) umount2(paths[1], MNT_DETACH);
  close((int)tree);
}

void remount(char** paths) { report(mount(NULL, paths[0], NULL, MS_REMOUNT | MS_BIND, NULL)); }

void inotify(char** paths) {
  const int watcher = inotify_init1(IN_CLOEXEC);
  report(watcher < 0 ? -1 : inotify_add_watch(watcher, paths[0], IN_OPEN));
  close(watcher);
}

void fanotify(char** paths) {
  const long watcher = syscall(SYS_fanotify_init, 0x200L /* FAN_REPORT_FID */, (long)O_RDONLY);
  const uint64_t opened = 0x20;  // FAN_OPEN
  report(watcher < 0 ? -1 : syscall(SYS_fanotify_mark, watcher, 1L, opened, AT_FDCWD, paths[0]));
  if (watcher >= 0) close((int)watcher);
}

void write_file(char** paths) {
  static char block[1 << 16];
  long long left = number(paths[1]), written = 0;
  const int fd = open(paths[0], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  signal(SIGXFSZ, SIG_IGN);  // Else the limit shows as a signal and not as EFBIG.
  int result = fd < 0 ? -1 : 0;
  while (result == 0 && left > 0) {
    const size_t size = left < (long long)sizeof block ? (size_t)left : sizeof block;
    const ssize_t part = write(fd, block, size);
    if (part < 0) result = -1;
    if (part > 0) written += part, left -= part;
  }
  if (result == 0) result = fsync(fd);
  detail_number("written", written);
  report(result);
  if (fd >= 0) close(fd);
}

void preallocate(char** paths) {
  const int fd = open(paths[0], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) {
    report_error("no file could be made");
    return;
  }
  signal(SIGXFSZ, SIG_IGN);
  report(fallocate(fd, 0, 0, number(paths[1])));
  close(fd);
  unlink(paths[0]);
}

void make_many(char** paths) {
  const long long wanted = number(paths[1]);
  long long made = 0;
  char path[kPathSize];
  int failure = 0;
  while (made < wanted && failure == 0) {
    snprintf(path, sizeof path, "%s/palmshed-probe-%lld", paths[0], made);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    failure = fd < 0 ? errno : 0;
    if (fd >= 0) ++made, close(fd);
  }
  detail_number("made", made);
  errno = failure;
  report(failure == 0 ? 0 : -1);
  for (long long i = 0; i < made; ++i) {
    snprintf(path, sizeof path, "%s/palmshed-probe-%lld", paths[0], i);
    unlink(path);
  }
}

// Executes in a child, which is killed as soon as that has worked; 0, or -1 and errno.
static int execute_in_child(int directory, const char* path, int flags) {
  int failed[2], failure = 0;
  if (pipe2(failed, O_CLOEXEC) != 0) return -1;
  const pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    char* const arguments[] = {(char*)"palmshed-probe", NULL};
    char* const environment[] = {NULL};
    const int nothing = open("/dev/null", O_RDWR);
    if (nothing >= 0) dup2(nothing, 1);
    syscall(SYS_execveat, directory, path, arguments, environment, (long)flags);
    failure = errno;
    write_all(failed[1], &failure, sizeof failure);
    _exit(1);
  }
  close(failed[1]);
  if (read(failed[0], &failure, sizeof failure) != sizeof failure) failure = 0;
  close(failed[0]);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  errno = failure;
  return failure == 0 ? 0 : -1;
}

void execute(char** paths) { report(execute_in_child(AT_FDCWD, paths[0], 0)); }

// This program's file, copied into `to`.
static int copy_of_this(int to) {
  const int from = open((const char*)getauxval(AT_EXECFN), O_RDONLY | O_CLOEXEC);
  static char block[1 << 16];
  ssize_t size = -1;
  while (from >= 0 && (size = read(from, block, sizeof block)) > 0) {
    if (write_all(to, block, (size_t)size) != 0) return -1;
  }
  if (from >= 0) close(from);
  return size == 0 ? 0 : -1;
}

void execute_memory(char** unused) {
  (void)unused;
  const int fd = (int)syscall(SYS_memfd_create, "palmshed-probe", 0L);
  if (fd < 0) {
    report(-1);
    return;
  }
  if (copy_of_this(fd) != 0) {
    report_error("this program could not be copied");
    return;
  }
  report(execute_in_child(fd, "", AT_EMPTY_PATH));
  close(fd);
}

void execute_written(char** unused) {
  (void)unused;
  static const char kName[] = "palmshed-probe-copy";
  const int fd = open(kName, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
  const int copied = fd < 0 ? -1 : copy_of_this(fd);
  if (fd >= 0) close(fd);
  if (copied != 0) {
    report_error("this program could not be copied");
  } else {
    report(execute_in_child(AT_FDCWD, kName, 0));
  }
  if (fd >= 0) unlink(kName);
}

void map_writable_executable(char** unused) {
  (void)unused;
  void* page =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  report(page == MAP_FAILED ? -1 : 0);
}

void lock_file(char** paths) {
  const int fd = open(paths[0], O_RDONLY | O_CLOEXEC);
  report(fd < 0 ? -1 : flock(fd, LOCK_EX | LOCK_NB));
  if (fd >= 0) close(fd);
}
