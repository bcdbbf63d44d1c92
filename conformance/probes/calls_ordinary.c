// Calls that an ordinary program needs: a filter that refuses them breaks what people run.
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "calls.h"

static long ok_seccomp(void) {
  const uint64_t allow[] = {0x7fff000000000006};  // BPF_RET | BPF_K, SECCOMP_RET_ALLOW
  const struct {
    uint16_t length;
    const void* filter;
  } program = {1, allow};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return syscall(SYS_seccomp, 1L, 0L, &program);
}
static long ok_landlock(void) { return syscall(SYS_landlock_create_ruleset, NULL, 0L, 1L); }
static long ok_memfd(void) { return syscall(SYS_memfd_create, "probe", 0L); }
static long ok_pidfd(void) { return syscall(SYS_pidfd_open, (long)getpid(), 0L); }
static long ok_futex(void) {
  static uint32_t word;
  return syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1L, NULL, NULL, 0L);
}
static long ok_membarrier(void) { return syscall(SYS_membarrier, 0L, 0L); }
static long ok_rseq(void) {
  static char area[64] __attribute__((aligned(32)));
  return syscall(SYS_rseq, area, 32L, 0L, 0x53053053L);
}
static long ok_getrandom(void) {
  char bytes[8];
  return syscall(SYS_getrandom, bytes, sizeof bytes, 0L);
}
static long ok_epoll(void) { return epoll_create1(0); }
static long ok_eventfd(void) { return eventfd(0, 0); }
static long ok_timerfd(void) { return timerfd_create(CLOCK_MONOTONIC, 0); }
static long ok_signalfd(void) {
  sigset_t set;
  sigemptyset(&set);
  return signalfd(-1, &set, 0);
}
static long ok_inotify(void) { return inotify_init1(0); }
static long ok_splice(void) {
  int from[2], to[2];
  if (pipe(from) != 0 || pipe(to) != 0 || write(from[1], "x", 1) != 1) return -1;
  return splice(from[0], NULL, to[1], NULL, 1, 0);
}
static long ok_copy_file_range(void) {
  const int from = (int)syscall(SYS_memfd_create, "from", 0L);
  const int to = (int)syscall(SYS_memfd_create, "to", 0L);
  if (write(from, "x", 1) != 1) return -1;
  lseek(from, 0, SEEK_SET);
  return syscall(SYS_copy_file_range, from, NULL, to, NULL, 1L, 0L);
}
static long ok_statx(void) {
  char facts[256];
  return syscall(SYS_statx, AT_FDCWD, ".", 0L, 0x7ffL, facts);
}
static long ok_vfork(void) {
  const pid_t child = vfork();
  if (child == 0) _exit(0);
  if (child > 0) waitpid(child, NULL, 0);
  return child;
}
static void* nothing(void* unused) { return unused; }
static long ok_clone_thread(void) {
  pthread_t thread;
  errno = pthread_create(&thread, NULL, nothing, NULL);
  if (errno != 0) return -1;
  return pthread_join(thread, NULL);
}
static long ok_prctl_name(void) { return prctl(PR_SET_NAME, "probe", 0, 0, 0); }
static long ok_sched_yield(void) { return sched_yield(); }

static void* pages(int protection) {
  void* at = mmap(NULL, 8192, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? NULL : at;
}
static long ok_madvise(void) {
  void* at = pages(PROT_READ);
  return at == NULL ? -1 : madvise(at, 8192, MADV_DONTNEED);
}
static long ok_mremap(void) {
  void* at = pages(PROT_READ);
  return at == NULL || mremap(at, 8192, 16384, MREMAP_MAYMOVE) == MAP_FAILED ? -1 : 0;
}
static long ok_mprotect_exec(void) {
  void* at = pages(PROT_READ | PROT_WRITE);
  return at == NULL ? -1 : mprotect(at, 8192, PROT_READ | PROT_EXEC);
}
static long ok_personality(void) { return personality(ADDR_NO_RANDOMIZE); }
static long ok_flock(void) {
  const int fd = open(".", O_RDONLY | O_DIRECTORY);
  return fd < 0 ? -1 : flock(fd, LOCK_SH | LOCK_NB);
}
static long ok_xattr(void) { return listxattr(".", NULL, 0); }

const struct call ordinary_calls[] = {{"ok-seccomp", ok_seccomp, kPlain},
                                      {"ok-landlock", ok_landlock, kPlain},
                                      {"ok-memfd", ok_memfd, kPlain},
                                      {"ok-pidfd", ok_pidfd, kPlain},
                                      {"ok-futex", ok_futex, kPlain},
                                      {"ok-membarrier", ok_membarrier, kPlain},
                                      {"ok-rseq", ok_rseq, kWrong},
                                      {"ok-getrandom", ok_getrandom, kPlain},
                                      {"ok-epoll", ok_epoll, kPlain},
                                      {"ok-eventfd", ok_eventfd, kPlain},
                                      {"ok-timerfd", ok_timerfd, kPlain},
                                      {"ok-signalfd", ok_signalfd, kPlain},
                                      {"ok-inotify", ok_inotify, kPlain},
                                      {"ok-splice", ok_splice, kPlain},
                                      {"ok-copy-file-range", ok_copy_file_range, kPlain},
                                      {"ok-statx", ok_statx, kPlain},
                                      {"ok-vfork", ok_vfork, kPlain},
                                      {"ok-clone-thread", ok_clone_thread, kPlain},
                                      {"ok-prctl-name", ok_prctl_name, kPlain},
                                      {"ok-sched-yield", ok_sched_yield, kPlain},
                                      {"ok-madvise", ok_madvise, kPlain},
                                      {"ok-mremap", ok_mremap, kPlain},
                                      {"ok-mprotect-exec", ok_mprotect_exec, kPlain},
                                      {"ok-personality-aslr", ok_personality, kPlain},
                                      {"ok-flock", ok_flock, kPlain},
                                      {"ok-xattr", ok_xattr, kPlain},
                                      {0}};
