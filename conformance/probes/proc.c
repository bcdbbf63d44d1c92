// What /proc and /sys show and let be changed, and whether fresh ones can be mounted.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

enum { kMostListed = 1000, kHow = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

// ---- Other processes.

static int list_pid(long pid, void* listed) {
  if (++*(int*)listed <= kMostListed) list_number(pid);
  return 0;
}

static int list_name(long pid, void* listed) {
  char path[64], name[64];
  snprintf(path, sizeof path, "/proc/%ld/comm", pid);
  const ssize_t size = read_file(path, name, sizeof name - 1);
  name[size > 0 ? size - 1 : 0] = '\0';  // Without the line feed.
  if (++*(int*)listed <= kMostListed) list_text(name);
  return 0;
}

static void pids(char** unused) {
  (void)unused;
  int listed = 0, named = 0;
  list_begin("pids");
  const int count = for_each_process(list_pid, &listed);
  list_end();
  const int failure = errno;
  list_begin("names");
  for_each_process(list_name, &named);
  list_end();
  detail_number("count", count < 0 ? 0 : count);
  errno = failure;
  report(count);
}

struct search {
  const char *file, *needle;
  int found;
  long pid;
};

// Links are read as links, files as files.
static ssize_t look(const char* path, char* into, size_t size) {
  const ssize_t link = readlink(path, into, size);
  return link >= 0 ? link : read_file(path, into, size);
}

static int find_in(long pid, void* state) {
  static char content[1 << 20];
  struct search* search = state;
  char path[96];
  if (pid == getpid()) return 0;
  snprintf(path, sizeof path, "/proc/%ld/%s", pid, search->file);
  const ssize_t size = look(path, content, sizeof content);
  if (size <= 0 || !contains(content, (size_t)size, search->needle)) return 0;
  search->found = 1;
  search->pid = pid;
  return 1;
}

static void report_found(const struct search* search, int tried) {
  detail_number("tried", tried < 0 ? 0 : tried);
  if (search->found) detail_number("pid", search->pid);
  if (search->found) detail_text("file", search->file);
  if (tried >= 0) errno = ENOENT;
  report(search->found ? 0 : -1);
}

static const char* const kFiles[] = {"environ", "cmdline", "maps", "comm", "cwd", "root", "exe"};

// number: which of them.
static void find_file(char** needle) {
  struct search search = {.file = kFiles[current->number], .needle = needle[0]};
  const int tried = for_each_process(find_in, &search);
  report_found(&search, tried);
}

static int find_in_descriptors(long pid, void* state) {
  struct search* search = state;
  char path[96], target[4096];
  snprintf(path, sizeof path, "/proc/%ld/fd", pid);
  DIR* directory = pid == getpid() ? NULL : opendir(path);
  if (directory == NULL) return 0;
  for (struct dirent* entry; !search->found && (entry = readdir(directory)) != NULL;) {
    const ssize_t size = readlinkat(dirfd(directory), entry->d_name, target, sizeof target);
    if (size <= 0 || !contains(target, (size_t)size, search->needle)) continue;
    search->found = 1;
    search->pid = pid;
  }
  closedir(directory);
  return search->found;
}

static void find_anywhere(char** needle) {
  struct search search = {.needle = needle[0]};
  int tried = 0;
  for (size_t i = 0; i < sizeof kFiles / sizeof *kFiles && !search.found; ++i) {
    search.file = kFiles[i];
    tried = for_each_process(find_in, &search);
  }
  if (!search.found) search.file = "fd";
  if (!search.found) tried = for_each_process(find_in_descriptors, &search);
  report_found(&search, tried);
}

static int open_executable(long pid, void* state) {
  struct search* search = state;
  char path[96];
  if (pid == getpid()) return 0;
  snprintf(path, sizeof path, "/proc/%ld/exe", pid);
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  close(fd);
  search->found = 1;
  search->pid = pid;
  return 1;
}

static void write_executables(char** unused) {
  (void)unused;
  struct search search = {.file = "exe"};
  const int tried = for_each_process(open_executable, &search);
  report_found(&search, tried);
}

static void memory_of(char** pid) {
  char path[96];
  snprintf(path, sizeof path, "/proc/%s/mem", pid[0]);
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  report(fd);  // Whoever may open it may read and write it.
  if (fd >= 0) close(fd);
}

static const char* const kFilesOfOne[] = {"environ", "cmdline", "maps",  "stack",
                                          "exe",     "auxv",    "status"};

static void file_of(char** pid) {
  char path[96];
  snprintf(path, sizeof path, "/proc/%s/%s", pid[0], kFilesOfOne[current->number]);
  report_content(open(path, kHow));
}

// ---- Files of the kernel.

static void read_path(char** path) { report_content(open(path[0], kHow)); }

static void rewrite(char** path) {
  char content[4096];
  const ssize_t size = read_file(path[0], content, sizeof content);
  const int fd = size < 0 ? -1 : open(path[0], O_WRONLY | O_CLOEXEC);
  const int failure = errno;
  if (size >= 0) detail_bytes("content", content, size < 200 ? (size_t)size : 200);
  errno = failure;
  report(fd < 0 ? -1 : write(fd, content, (size_t)size));
  if (fd >= 0) close(fd);
}

static void write_nothing(char** path) {
  const int fd = open(path[0], O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  report(fd < 0 ? -1 : write(fd, "", 0));
  if (fd >= 0) close(fd);
}

static const char* const kSensitive[] = {"/proc/kcore",
                                         "/proc/kmsg",
                                         "/proc/keys",
                                         "/proc/key-users",
                                         "/proc/timer_list",
                                         "/proc/sched_debug",
                                         "/proc/slabinfo",
                                         "/proc/vmallocinfo",
                                         "/proc/pagetypeinfo",
                                         "/proc/iomem",
                                         "/proc/ioports",
                                         "/proc/kpagecount",
                                         "/proc/kpageflags",
                                         "/proc/1/environ",
                                         "/proc/1/maps",
                                         "/proc/1/mem",
                                         "/proc/1/cwd",
                                         "/proc/1/root/etc",
                                         "/proc/1/exe",
                                         "/proc/1/fd",
                                         "/proc/1/stack",
                                         "/proc/1/syscall",
                                         "/proc/1/auxv",
                                         "/proc/sys/kernel/core_pattern",
                                         "/proc/acpi",
                                         "/proc/scsi",
                                         "/proc/bus",
                                         "/proc/latency_stats",
                                         "/proc/config.gz",
                                         "/sys/kernel/security",
                                         "/sys/kernel/debug",
                                         "/sys/kernel/tracing",
                                         "/sys/kernel/vmcoreinfo",
                                         "/sys/kernel/notes",
                                         "/sys/firmware",
                                         "/sys/fs/cgroup",
                                         "/sys/fs/bpf",
                                         "/sys/fs/pstore",
                                         "/sys/class/net",
                                         "/sys/class/dmi/id/product_uuid",
                                         "/sys/block",
                                         "/sys/module",
                                         "/sys/hypervisor",
                                         "/sys/devices/virtual/powercap"};

static void every_sensitive(char** unused) {
  (void)unused;
  for (size_t i = 0; i < sizeof kSensitive / sizeof *kSensitive; ++i) {
    const int fd = open(kSensitive[i], kHow);
    report_as(fd, "read-%s", kSensitive[i]);
    if (fd >= 0) close(fd);
  }
}

// Opened for writing only: that it may is enough. Files that anybody may open, and that refuse only
// what is written, are not among them.
static const char* const kControls[] = {"/proc/sysrq-trigger",
                                        "/proc/sys/kernel/core_pattern",
                                        "/proc/sys/kernel/hostname",
                                        "/proc/sys/kernel/modprobe",
                                        "/proc/sys/kernel/hotplug",
                                        "/proc/sys/kernel/sysrq",
                                        "/proc/sys/kernel/randomize_va_space",
                                        "/proc/sys/kernel/yama/ptrace_scope",
                                        "/proc/sys/kernel/shmmax",
                                        "/proc/sys/kernel/keys/maxkeys",
                                        "/proc/sys/kernel/unprivileged_bpf_disabled",
                                        "/proc/sys/vm/overcommit_memory",
                                        "/proc/sys/vm/drop_caches",
                                        "/proc/sys/vm/panic_on_oom",
                                        "/proc/sys/fs/file-max",
                                        "/proc/sys/fs/suid_dumpable",
                                        "/proc/sys/fs/binfmt_misc/register",
                                        "/proc/sys/net/ipv4/ip_forward",
                                        "/proc/sys/net/ipv4/ping_group_range",
                                        "/proc/sys/user/max_user_namespaces",
                                        "/proc/irq/default_smp_affinity",
                                        "/proc/mtrr",
                                        "/proc/1/oom_score_adj",
                                        "/proc/1/mem",
                                        "/proc/1/uid_map",
                                        "/proc/1/comm",
                                        "/sys/power/state",
                                        "/sys/power/disk",
                                        "/sys/kernel/uevent_helper",
                                        "/sys/kernel/mm/ksm/run",
                                        "/sys/kernel/mm/transparent_hugepage/enabled",
                                        "/sys/module/apparmor/parameters/mode",
                                        "/sys/fs/cgroup/cgroup.procs",
                                        "/sys/fs/cgroup/release_agent",
                                        "/sys/fs/cgroup/memory/release_agent",
                                        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                                        "/sys/fs/cgroup/devices/devices.allow",
                                        "/sys/fs/cgroup/pids/release_agent",
                                        "/sys/bus/pci/rescan",
                                        "/sys/class/net/lo/mtu",
                                        "/sys/devices/system/cpu/cpu0/online"};

static void every_control(char** unused) {
  (void)unused;
  for (size_t i = 0; i < sizeof kControls / sizeof *kControls; ++i) {
    const int fd = open(kControls[i], O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    report_as(fd, "control-%s", kControls[i]);
    if (fd >= 0) close(fd);
  }
}

static void oom_lower(char** unused) {
  (void)unused;
  char old[16] = "", lower[24];
  const ssize_t size = read_file("/proc/self/oom_score_adj", old, sizeof old - 1);
  const int fd = size < 0 ? -1 : open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) {
    report(-1);
    return;
  }
  snprintf(lower, sizeof lower, "%ld", strtol(old, NULL, 10) - 1);
  const ssize_t written = write(fd, lower, strlen(lower));
  report(written);
  if (written > 0) (void)!write(fd, old, strlen(old));
  close(fd);
}

// ---- Mounts.

static const struct {
  const char *type, *options;
} kTypes[] = {{"proc", NULL},
              {"sysfs", NULL},
              {"cgroup2", NULL},
              {"tmpfs", NULL},
              {"devpts", NULL},
              {"mqueue", NULL},
              {"overlay", "lowerdir=/usr,upperdir=.,workdir=."}};

static void fresh_mount(char** unused) {
  (void)unused;
  static const char kDirectory[] = "palmshed-probe-mount";
  if (mkdir(kDirectory, 0700) != 0) {
    report_error("no directory could be made");
    return;
  }
  const char* type = kTypes[current->number].type;
  const int result = mount("none", kDirectory, type, 0, kTypes[current->number].options);
  report(result);
  if (result == 0) umount2(kDirectory, MNT_DETACH);
  rmdir(kDirectory);
}

// Calls `each` with the fields of every line of mountinfo: target, options of the mount, type.
static int for_each_mount(void (*each)(const char* target, const char* options, const char* type,
                                       const char* source)) {
  FILE* file = fopen("/proc/self/mountinfo", "re");
  static char line[8192];
  if (file == NULL) return -1;
  int count = 0;
  while (fgets(line, sizeof line, file) != NULL) {
    char target[4096], options[512], type[64] = "", source[512] = "";
    if (sscanf(line, "%*s %*s %*s %*s %4095s %511s", target, options) != 2) continue;
    const char* rest = strstr(line, " - ");
    if (rest != NULL) (void)sscanf(rest, " - %63s %511s", type, source);
    each(target, options, type, source);
    ++count;
  }
  fclose(file);
  return count;
}

static void list_mount(const char* target, const char* options, const char* type,
                       const char* source) {
  object_begin(NULL);
  detail_text("target", target);
  detail_text("type", type);
  detail_text("options", options);
  detail_text("source", source);
  object_end();
}

static void list_if_writable(const char* target, const char* options, const char* type,
                             const char* source) {
  (void)type, (void)source;
  if (strncmp(options, "rw", 2) == 0) list_text(target);
}

static void mounts(char** unused) {
  (void)unused;
  list_begin(current->number == 0 ? "mounts" : "targets");
  const int count = for_each_mount(current->number == 0 ? list_mount : list_if_writable);
  const int failure = errno;
  list_end();
  detail_number("count", count < 0 ? 0 : count);
  errno = failure;
  report(count);
}

static void cgroup(char** unused) {
  (void)unused;
  char text[4096];
  const ssize_t size = read_file("/proc/self/cgroup", text, sizeof text - 1);
  const int failure = errno;
  if (size >= 0) detail_bytes("path", text, (size_t)size);
  list_begin("writable");
  DIR* directory = opendir("/sys/fs/cgroup");
  for (struct dirent* entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
    if (strcmp(entry->d_name, "..") == 0) continue;
    if (faccessat(dirfd(directory), entry->d_name, W_OK, AT_EACCESS) == 0) list_text(entry->d_name);
  }
  if (directory != NULL) closedir(directory);
  list_end();
  errno = failure;
  report(size);
}

struct attempt attempts[] = {{"pids", 0, pids},
                             {"find-environ", 1, find_file, .number = 0},
                             {"find-cmdline", 1, find_file, .number = 1},
                             {"find-maps", 1, find_file, .number = 2},
                             {"find-anywhere", 1, find_anywhere},
                             {"write-executables", 0, write_executables},
                             {"memory-of", 1, memory_of},
                             {"environ-of", 1, file_of, .number = 0},
                             {"cmdline-of", 1, file_of, .number = 1},
                             {"maps-of", 1, file_of, .number = 2},
                             {"stack-of", 1, file_of, .number = 3},
                             {"exe-of", 1, file_of, .number = 4},
                             {"auxv-of", 1, file_of, .number = 5},
                             {"status-of", 1, file_of, .number = 6},
                             {"read", 1, read_path},
                             {"rewrite", 1, rewrite},
                             {"write-nothing", 1, write_nothing},
                             {"every-sensitive", 0, every_sensitive},
                             {"every-control", 0, every_control},
                             {"oom-lower", 0, oom_lower},
                             {"fresh-proc", 0, fresh_mount, .number = 0},
                             {"fresh-sysfs", 0, fresh_mount, .number = 1},
                             {"fresh-cgroup", 0, fresh_mount, .number = 2},
                             {"fresh-tmpfs", 0, fresh_mount, .number = 3},
                             {"fresh-devpts", 0, fresh_mount, .number = 4},
                             {"fresh-mqueue", 0, fresh_mount, .number = 5},
                             {"fresh-overlay", 0, fresh_mount, .number = 6},
                             {"mounts", 0, mounts, .number = 0},
                             {"writable-mounts", 0, mounts, .number = 1},
                             {"cgroup", 0, cgroup},
                             {0}};
