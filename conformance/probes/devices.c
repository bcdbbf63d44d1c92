// Device files: those of the machine, and those that every program expects.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#include "probe.h"

enum { kHow = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, kMostNodes = 256 };

static void open_device(char** path) {
  struct stat facts;
  const int fd = open(path[0], kHow);
  if (fd >= 0 && fstat(fd, &facts) == 0) {
    detail_number("major", major(facts.st_rdev));
    detail_number("minor", minor(facts.st_rdev));
  }
  report(fd);
  if (fd >= 0) close(fd);
}

static const char* const kDevices[] = {"mem",
                                       "kmem",
                                       "port",
                                       "kmsg",
                                       "sda",
                                       "sda1",
                                       "vda",
                                       "vda1",
                                       "nvme0",
                                       "nvme0n1",
                                       "xvda",
                                       "mmcblk0",
                                       "dm-0",
                                       "mapper/control",
                                       "loop-control",
                                       "loop0",
                                       "fuse",
                                       "kvm",
                                       "vhost-net",
                                       "vhost-vsock",
                                       "vsock",
                                       "net/tun",
                                       "ppp",
                                       "tty",
                                       "tty0",
                                       "tty1",
                                       "ttyS0",
                                       "hvc0",
                                       "console",
                                       "vcs",
                                       "vcsa",
                                       "hpet",
                                       "rtc0",
                                       "uinput",
                                       "uhid",
                                       "input/event0",
                                       "input/mice",
                                       "dri/card0",
                                       "dri/renderD128",
                                       "fb0",
                                       "snd/control",
                                       "video0",
                                       "nvidia0",
                                       "nvidiactl",
                                       "kfd",
                                       "tpm0",
                                       "tpmrm0",
                                       "hwrng",
                                       "btrfs-control",
                                       "cuse",
                                       "userfaultfd",
                                       "bus/usb/001/001",
                                       "cpu/0/msr",
                                       "cpu/0/cpuid",
                                       "cpu_dma_latency",
                                       "autofs",
                                       "raw/rawctl",
                                       "sg0",
                                       "udmabuf",
                                       "dma_heap/system",
                                       "vfio/vfio",
                                       "iommu",
                                       "sgx_enclave",
                                       "sev",
                                       "rfkill",
                                       "mcelog",
                                       "nbd0",
                                       "ram0",
                                       "zfs",
                                       "hugepages",
                                       "mqueue"};

static void every(char** unused) {
  (void)unused;
  char path[64];
  for (size_t i = 0; i < sizeof kDevices / sizeof *kDevices; ++i) {
    snprintf(path, sizeof path, "/dev/%s", kDevices[i]);
    const int fd = open(path, kHow);
    report_as(fd, "device-%s", path);
    if (fd >= 0) close(fd);
  }
  // To open it is to start it.
  report_as(access("/dev/watchdog", R_OK), "device-/dev/watchdog");
}

static int listed;

static void list_below(const char* path, int depth) {
  DIR* directory = opendir(path);
  for (struct dirent* entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
    char below[512];
    struct stat facts;
    if (entry->d_name[0] == '.') continue;
    snprintf(below, sizeof below, "%s/%.200s", path, entry->d_name);
    if (lstat(below, &facts) != 0) continue;
    if (S_ISDIR(facts.st_mode) && depth > 0) list_below(below, depth - 1);
    if (!S_ISCHR(facts.st_mode) && !S_ISBLK(facts.st_mode)) continue;
    if (++listed > kMostNodes) continue;
    object_begin(NULL);
    detail_text("path", below);
    detail_text("type", S_ISCHR(facts.st_mode) ? "char" : "block");
    detail_number("major", major(facts.st_rdev));
    detail_number("minor", minor(facts.st_rdev));
    object_end();
  }
  if (directory != NULL) closedir(directory);
}

static void list(char** unused) {
  (void)unused;
  listed = 0;
  list_begin("nodes");
  list_below("/dev", 3);
  list_end();
  detail_number("count", listed);
  report(0);
}

static void make_and_open(char** unused) {
  (void)unused;
  static const struct {
    const char* name;
    mode_t type;
    unsigned major, minor;
  } kNodes[] = {{"mem", S_IFCHR, 1, 1},          {"null", S_IFCHR, 1, 3},
                {"kmsg", S_IFCHR, 1, 11},        {"disk-8-0", S_IFBLK, 8, 0},
                {"disk-254-0", S_IFBLK, 254, 0}, {"loop", S_IFBLK, 7, 0},
                {"fuse", S_IFCHR, 10, 229}};
  static const char kName[] = "palmshed-probe-node";
  for (size_t i = 0; i < sizeof kNodes / sizeof *kNodes; ++i) {
    const int made = mknod(kName, kNodes[i].type | 0600, makedev(kNodes[i].major, kNodes[i].minor));
    const int fd = made != 0 ? -1 : open(kName, kHow);
    detail_flag("made", made == 0);
    report_as(fd, "make-%s", kNodes[i].name);
    if (fd >= 0) close(fd);
    if (made == 0) unlink(kName);
  }
}

// ---- What every program expects.

static long works_null(int fd) {
  char byte;
  return write(fd, "x", 1) == 1 && read(fd, &byte, 1) == 0 ? 0 : -1;
}
static long works_zero(int fd) {
  char byte = 1;
  return read(fd, &byte, 1) == 1 && byte == 0 ? 0 : -1;
}
static long works_full(int fd) { return write(fd, "x", 1) == -1 && errno == ENOSPC ? 0 : -1; }
static long works_random(int fd) {
  char bytes[32] = {0}, same[32] = {0};
  return read(fd, bytes, sizeof bytes) == sizeof bytes && memcmp(bytes, same, sizeof same) != 0
             ? 0
             : -1;
}

static long (*const kWorks[])(int) = {works_null, works_zero, works_full, works_random};

static void expected(char** unused) {
  (void)unused;
  char path[64];
  snprintf(path, sizeof path, "/dev/%s", current->name);
  const int writes = current->number == 0 || current->number == 2;
  const int fd = open(path, (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  errno = fd < 0 ? errno : 0;
  const long result = fd < 0 ? -1 : kWorks[current->number](fd);
  if (result < 0 && errno == 0) errno = EIO;
  report(result);
  if (fd >= 0) close(fd);
}

static void terminal(char** unused) {
  (void)unused;
  char name[64], byte = 0;
  const int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  const int slave = master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 ||
                            ptsname_r(master, name, sizeof name) != 0
                        ? -1
                        : open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  report(slave < 0 || write(slave, "x", 1) != 1 ? -1 : read(master, &byte, 1));
  if (slave >= 0) close(slave);
  if (master >= 0) close(master);
}

static void controlling_terminal(char** unused) {
  (void)unused;
  const int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
  report(fd);
  if (fd >= 0) close(fd);
}

static void shared_memory(char** unused) {
  (void)unused;
  static const char kName[] = "/palmshed-probe";
  const int fd = shm_open(kName, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) {
    report(-1);
    return;
  }
  char* page = MAP_FAILED;
  if (ftruncate(fd, 4096) == 0) {
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  if (page != MAP_FAILED) *page = 'x';
  report(page == MAP_FAILED ? -1 : 0);
  shm_unlink(kName);
  close(fd);
}

static void standard_streams(char** unused) {
  (void)unused;
  static const struct {
    const char* path;
    int how;
  } kStreams[] = {{"/dev/stdin", O_RDONLY},
                  {"/dev/stdout", O_WRONLY},
                  {"/dev/stderr", O_WRONLY},
                  {"/dev/fd/1", O_WRONLY}};
  for (size_t i = 0; i < 4; ++i) {
    const int fd = open(kStreams[i].path, kStreams[i].how | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    report_as(fd, "open-%s", kStreams[i].path);
    if (fd >= 0) close(fd);
  }
}

struct attempt attempts[] = {{"every", 0, every},
                             {"open", 1, open_device},
                             {"list", 0, list},
                             {"make-and-open", 0, make_and_open},
                             {"null", 0, expected, .number = 0},
                             {"zero", 0, expected, .number = 1},
                             {"full", 0, expected, .number = 2},
                             {"random", 0, expected, .number = 3},
                             {"urandom", 0, expected, .number = 3},
                             {"terminal", 0, terminal},
                             {"controlling-terminal", 0, controlling_terminal},
                             {"shared-memory", 0, shared_memory},
                             {"standard-streams", 0, standard_streams},
                             {0}};
