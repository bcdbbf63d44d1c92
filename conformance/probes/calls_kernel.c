// Calls that change the machine. Each asks for the right before it looks at what is wrong with the
// arguments, or changes something to what it is.
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"

#if !defined(__x86_64__) || !defined(SYS_kexec_file_load) || !defined(SYS_lookup_dcookie)
// What this architecture does not have.
static long absent(void) {
  errno = ENOSYS;
  return -1;
}
#endif

static char directory[] = "palmshed-probe-directory";

static long make_mount(void) {
  if (mkdir(directory, 0700) != 0) return -1;
  const long result = mount("none", directory, "tmpfs", 0, NULL);
  const int failure = errno;
  if (result == 0) umount2(directory, MNT_DETACH);
  rmdir(directory);
  errno = failure;
  return result;
}

// Of a directory that is no mount: who may unmount hears EINVAL.
static long in_directory(long (*act)(void)) {
  if (mkdir(directory, 0700) != 0) return -1;
  const long result = act();
  const int failure = errno;
  rmdir(directory);
  errno = failure;
  return result;
}
static long umount_it(void) { return umount2(directory, 0); }
static long call_umount(void) { return in_directory(umount_it); }
static long chroot_it(void) { return chroot(directory); }
static long call_chroot(void) { return in_directory(chroot_it); }
static long pivot_it(void) { return syscall(SYS_pivot_root, directory, directory); }
static long call_pivot_root(void) { return in_directory(pivot_it); }
static long call_open_tree(void) { return syscall(SYS_open_tree, AT_FDCWD, ".", 1L); }
static long call_fsopen(void) { return syscall(SYS_fsopen, "tmpfs", 0L); }
static long call_fsconfig(void) { return syscall(SYS_fsconfig, -1L, 6L, NULL, NULL, 0L); }
static long call_fsmount(void) { return syscall(SYS_fsmount, -1L, 0L, 0L); }
static long call_fspick(void) { return syscall(SYS_fspick, -1L, "", 8L); }
static long call_move_mount(void) { return syscall(SYS_move_mount, -1L, "", -1L, "", 0x44L); }
static long call_mount_setattr(void) {
  uint64_t nothing[4] = {0, 0, 0, 0};
  return syscall(SYS_mount_setattr, -1L, "", 0x1000L, nothing, sizeof nothing);
}

static long call_bpf(void) {
  uint32_t map[32] = {2 /* array */, 4, 4, 1};
  return syscall(SYS_bpf, 0L, map, sizeof map);
}
static long call_perf(void) {
  struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE,
                                  .size = sizeof event,
                                  .config = PERF_COUNT_SW_TASK_CLOCK,
                                  .exclude_kernel = 1,
                                  .exclude_hv = 1};
  return syscall(SYS_perf_event_open, &event, 0L, -1L, -1L, 0L);
}
static long call_userfaultfd(void) { return syscall(SYS_userfaultfd, 1L | O_CLOEXEC); }
static long call_userfaultfd_device(void) { return open("/dev/userfaultfd", O_RDWR | O_CLOEXEC); }
static long call_init_module(void) { return syscall(SYS_init_module, "", 0L, ""); }
static long call_finit_module(void) { return syscall(SYS_finit_module, -1L, "", 0L); }
static long call_delete_module(void) {
  return syscall(SYS_delete_module, "palmshed_none", (long)O_NONBLOCK);
}
static long call_kexec_load(void) { return syscall(SYS_kexec_load, 0L, 99999L, NULL, 0x8000L); }
#ifdef SYS_kexec_file_load
static long call_kexec_file_load(void) {
  return syscall(SYS_kexec_file_load, -1L, -1L, 0L, NULL, 0x8000L);
}
#else
#define call_kexec_file_load absent
#endif
static long call_swapon(void) { return syscall(SYS_swapon, "/nonexistent/palmshed", 0L); }
static long call_swapoff(void) { return syscall(SYS_swapoff, "/nonexistent/palmshed"); }
static long call_reboot(void) { return syscall(SYS_reboot, 0L, 0L, 0L, NULL); }
static long call_acct(void) { return syscall(SYS_acct, "/nonexistent/palmshed"); }
static long call_quotactl(void) { return syscall(SYS_quotactl, 0x80000100L, NULL, 0L, NULL); }
static long call_quotactl_fd(void) { return syscall(443L, -1L, 0x80000700L, 0L, NULL); }
static long call_vhangup(void) { return syscall(SYS_vhangup); }

static long call_sethostname(void) {
  struct utsname names;
  uname(&names);
  return syscall(SYS_sethostname, names.nodename, strlen(names.nodename));
}
static long call_setdomainname(void) {
  struct utsname names;
  uname(&names);
  return syscall(SYS_setdomainname, names.domainname, strlen(names.domainname));
}

static long call_settimeofday(void) {
  struct timezone zone = {0};
  syscall(SYS_gettimeofday, NULL, &zone);
  return syscall(SYS_settimeofday, NULL, &zone);
}
static long call_clock_settime(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return syscall(SYS_clock_settime, CLOCK_REALTIME, &now);
}
static struct timex same_tick(void) {
  struct timex state = {.modes = 0};
  syscall(SYS_adjtimex, &state);
  state.modes = ADJ_TICK;
  return state;
}
static long call_adjtimex(void) {
  struct timex state = same_tick();
  return syscall(SYS_adjtimex, &state);
}
static long call_clock_adjtime(void) {
  struct timex state = same_tick();
  return syscall(SYS_clock_adjtime, CLOCK_REALTIME, &state);
}
static long call_syslog(void) {
  char byte;
  return syscall(SYS_syslog, 3L, &byte, 1L);
}

#ifdef __x86_64__
static long call_iopl(void) { return syscall(SYS_iopl, 3L); }
static long call_ioperm(void) { return syscall(SYS_ioperm, 0x80L, 1L, 1L); }
static long call_modify_ldt(void) {
  char table[64];
  return syscall(SYS_modify_ldt, 0L, table, sizeof table);
}
static long call_uselib(void) { return syscall(SYS_uselib, "/nonexistent/palmshed"); }
static long call_ustat(void) { return syscall(SYS_ustat, 0L, NULL); }
static long call_sysfs(void) { return syscall(SYS_sysfs, 3L); }
#else
#define call_iopl absent
#define call_ioperm absent
#define call_modify_ldt absent
#define call_uselib absent
#define call_ustat absent
#define call_sysfs absent
#endif
#ifdef SYS_lookup_dcookie
static long call_lookup_dcookie(void) {
  char path[64];
  return syscall(SYS_lookup_dcookie, 0L, path, sizeof path);
}
#else
#define call_lookup_dcookie absent
#endif
static long call_memfd_secret(void) { return syscall(447L, 0L); }
static long call_remap_file_pages(void) {
  return syscall(SYS_remap_file_pages, 1L, 0L, 1L, 0L, 0L);
}
static long call_io_uring_setup(void) {
  uint64_t parameters[15] = {0};
  return syscall(SYS_io_uring_setup, 4L, parameters);
}
static long call_io_uring_enter(void) {
  return syscall(SYS_io_uring_enter, -1L, 0L, 0L, 0L, NULL, 0L);
}
static long call_io_uring_register(void) {
  return syscall(SYS_io_uring_register, -1L, 1L, NULL, 0L);
}
static long call_fanotify_init(void) { return syscall(SYS_fanotify_init, 0x200L, (long)O_RDONLY); }
static long call_name_to_handle(void) {
  struct {
    uint32_t bytes;
    int32_t type;
    unsigned char handle[128];
  } handle = {.bytes = sizeof handle.handle};
  int mount_id;
  return syscall(SYS_name_to_handle_at, AT_FDCWD, ".", &handle, &mount_id, 0L);
}
static long call_open_by_handle(void) {
  const uint32_t handle[3] = {4, 0, 0};
  return syscall(SYS_open_by_handle_at, AT_FDCWD, handle, 0L);
}
static long call_tiocsti(void) { return ioctl(0, TIOCSTI, "x"); }
static long call_tioclinux(void) {
  char subcode = 12;  // Which console is in front; reads only.
  return ioctl(0, TIOCLINUX, &subcode);
}
static long call_mlockall(void) { return mlockall(MCL_CURRENT); }

const struct call kernel_calls[] = {{"mount", make_mount, kPlain},
                                    {"umount", call_umount, kWrong},
                                    {"chroot", call_chroot, kPlain},
                                    {"pivot-root", call_pivot_root, kWrong},
                                    {"open-tree", call_open_tree, kPlain},
                                    {"fsopen", call_fsopen, kPlain},
                                    {"fsconfig", call_fsconfig, kWrong},
                                    {"fsmount", call_fsmount, kWrong},
                                    {"fspick", call_fspick, kWrong},
                                    {"move-mount", call_move_mount, kWrong},
                                    {"mount-setattr", call_mount_setattr, kWrong},
                                    {"bpf", call_bpf, kPlain},
                                    {"perf-event-open", call_perf, kPlain},
                                    {"userfaultfd", call_userfaultfd, kPlain},
                                    {"userfaultfd-device", call_userfaultfd_device, kPlain},
                                    {"init-module", call_init_module, kWrong},
                                    {"finit-module", call_finit_module, kWrong},
                                    {"delete-module", call_delete_module, kWrong},
                                    {"kexec-load", call_kexec_load, kWrong},
                                    {"kexec-file-load", call_kexec_file_load, kWrong},
                                    {"swapon", call_swapon, kWrong},
                                    {"swapoff", call_swapoff, kWrong},
                                    {"reboot", call_reboot, kWrong},
                                    {"acct", call_acct, kWrong},
                                    {"quotactl", call_quotactl, kWrong},
                                    {"quotactl-fd", call_quotactl_fd, kWrong},
                                    {"vhangup", call_vhangup, kPlain},
                                    {"sethostname", call_sethostname, kPlain},
                                    {"setdomainname", call_setdomainname, kPlain},
                                    {"settimeofday", call_settimeofday, kPlain},
                                    {"clock-settime", call_clock_settime, kPlain},
                                    {"adjtimex", call_adjtimex, kPlain},
                                    {"clock-adjtime", call_clock_adjtime, kPlain},
                                    {"syslog", call_syslog, kPlain},
                                    {"iopl", call_iopl, kPlain},
                                    {"ioperm", call_ioperm, kPlain},
                                    {"modify-ldt", call_modify_ldt, kPlain},
                                    {"uselib", call_uselib, kWrong},
                                    {"ustat", call_ustat, kWrong},
                                    {"sysfs", call_sysfs, kPlain},
                                    {"lookup-dcookie", call_lookup_dcookie, kWrong},
                                    {"memfd-secret", call_memfd_secret, kPlain},
                                    {"remap-file-pages", call_remap_file_pages, kWrong},
                                    {"io-uring-setup", call_io_uring_setup, kPlain},
                                    {"io-uring-enter", call_io_uring_enter, kWrong},
                                    {"io-uring-register", call_io_uring_register, kWrong},
                                    {"fanotify-init", call_fanotify_init, kPlain},
                                    {"name-to-handle", call_name_to_handle, kPlain},
                                    {"open-by-handle", call_open_by_handle, kWrong},
                                    {"tiocsti", call_tiocsti, kPlain},
                                    {"tioclinux", call_tioclinux, kPlain},
                                    {"mlockall", call_mlockall, kPlain},
                                    {0}};
