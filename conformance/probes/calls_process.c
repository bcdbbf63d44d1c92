// Calls that reach keys, other processes, or an identity that is not one's own; and, beside them,
// those that an ordinary program cannot do without.
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "calls.h"

static long call_keyctl(void) { return syscall(SYS_keyctl, 0L, -4L, 0L); }
static long call_keyctl_session(void) { return syscall(SYS_keyctl, 0L, -3L, 0L); }
static long call_keyctl_join(void) { return syscall(SYS_keyctl, 1L, NULL); }
static long call_add_key(void) {
  return syscall(SYS_add_key, "user", "palmshed-probe", "x", 1L, -2L);
}
static long call_request_key(void) {
  return syscall(SYS_request_key, "user", "palmshed-none", NULL, 0L);
}

static long first_pidfd(void) { return syscall(SYS_pidfd_open, 1L, 0L); }
static char byte;
static const struct iovec kHere = {&byte, 1}, kThere = {(void*)0x10, 1};
static long call_readv(void) {
  return syscall(SYS_process_vm_readv, 1L, &kHere, 1L, &kThere, 1L, 0L);
}
static long call_writev(void) {
  return syscall(SYS_process_vm_writev, 1L, &kHere, 1L, &kThere, 1L, 0L);
}
static long call_process_madvise(void) {
  const long fd = first_pidfd();
  return fd < 0 ? -1 : syscall(SYS_process_madvise, fd, &kThere, 1L, (long)MADV_COLD, 0L);
}
static long call_process_mrelease(void) {
  const long fd = first_pidfd();
  return fd < 0 ? -1 : syscall(448L, fd, 0L);
}
static long call_pidfd_getfd(void) {
  const long fd = first_pidfd();
  return fd < 0 ? -1 : syscall(SYS_pidfd_getfd, fd, 0L, 0L);
}
static long call_kcmp(void) { return syscall(SYS_kcmp, (long)getpid(), 1L, 1L, 0L, 0L); }
static long call_move_pages(void) { return syscall(SYS_move_pages, 1L, 0L, NULL, NULL, NULL, 0L); }
static long call_migrate_pages(void) { return syscall(SYS_migrate_pages, 1L, 0L, NULL, NULL); }
static long call_mbind(void) { return syscall(SYS_mbind, 0L, 0L, 0L, NULL, 0L, 0L); }
static long call_set_mempolicy(void) { return syscall(SYS_set_mempolicy, 0L, NULL, 0L); }

static long call_setuid(void) { return syscall(SYS_setuid, 0L); }
static long call_setgid(void) { return syscall(SYS_setgid, 0L); }
static long call_setresuid(void) { return syscall(SYS_setresuid, 0L, 0L, 0L); }
static long call_setgroups(void) { return syscall(SYS_setgroups, 0L, NULL); }
// It says what was, not whether it worked: the second call tells.
static long call_setfsuid(void) {
  if (syscall(SYS_setfsuid, 0L) < 0) return -1;
  errno = EPERM;
  return syscall(SYS_setfsuid, -1L) == 0 ? 0 : -1;
}
static long call_capset(void) {
  uint32_t header[2] = {0x20080522, 0};
  const uint32_t all[6] = {1u << 21, 1u << 21, 0, 0, 0, 0};  // CAP_SYS_ADMIN
  return syscall(SYS_capset, header, all);
}
static long call_securebits(void) {
  return prctl(PR_SET_SECUREBITS, prctl(PR_GET_SECUREBITS) | 1, 0, 0, 0);
}
static long call_keepcaps(void) { return prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0); }
static long call_set_mm(void) { return prctl(PR_SET_MM, PR_SET_MM_START_BRK, 0, 0, 0); }
static long call_ambient(void) { return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 13, 0, 0); }

static long call_fifo(void) {
  const struct sched_param one = {.sched_priority = 1};
  return syscall(SYS_sched_setscheduler, 0L, (long)SCHED_FIFO, &one);
}
static long call_deadline(void) {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } wanted = {sizeof wanted, 6, 0, 0, 0, 100000, 10000000, 10000000};
  return syscall(SYS_sched_setattr, 0L, &wanted, 0L);
}
static long call_nice(void) {
  return setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - 1);
}
static long call_ioprio(void) { return syscall(SYS_ioprio_set, 1L, 0L, 1L << 13 | 4); }
static long call_rlimit(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_CORE, &limit);
  if (limit.rlim_max == RLIM_INFINITY) return 0;  // Nothing to raise: as open as it gets.
  ++limit.rlim_max;
  return setrlimit(RLIMIT_CORE, &limit);
}
static long call_personality_32(void) { return personality(8); }

static long call_shmget(void) {
  const int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
  if (id >= 0) shmctl(id, IPC_RMID, NULL);
  return id;
}
static long call_msgget(void) {
  const int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
  if (id >= 0) msgctl(id, IPC_RMID, NULL);
  return id;
}
static long call_semget(void) {
  const int id = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
  if (id >= 0) semctl(id, 0, IPC_RMID);
  return id;
}
static long call_mq_open(void) {
  const mqd_t queue = mq_open("/palmshed-probe", O_RDWR | O_CREAT | O_EXCL, 0600, NULL);
  if (queue >= 0) mq_unlink("/palmshed-probe");
  return queue;
}

const struct call process_calls[] = {{"keyctl", call_keyctl, kWrong},
                                     {"keyctl-session", call_keyctl_session, kWrong},
                                     {"keyctl-join", call_keyctl_join, kPlain},
                                     {"add-key", call_add_key, kPlain},
                                     {"request-key", call_request_key, kWrong},
                                     {"process-vm-readv-1", call_readv, kWrong},
                                     {"process-vm-writev-1", call_writev, kWrong},
                                     {"process-madvise-1", call_process_madvise, kWrong},
                                     {"process-mrelease-1", call_process_mrelease, kWrong},
                                     {"pidfd-getfd-1", call_pidfd_getfd, kWrong},
                                     {"kcmp-1", call_kcmp, kWrong},
                                     {"move-pages", call_move_pages, kWrong},
                                     {"migrate-pages", call_migrate_pages, kWrong},
                                     {"mbind", call_mbind, kWrong},
                                     {"set-mempolicy", call_set_mempolicy, kPlain},
                                     {"setuid-root", call_setuid, kUnmapped},
                                     {"setgid-root", call_setgid, kUnmapped},
                                     {"setresuid-root", call_setresuid, kUnmapped},
                                     {"setgroups", call_setgroups, kUnmapped},
                                     {"setfsuid-root", call_setfsuid, kPlain},
                                     {"capset", call_capset, kPlain},
                                     {"prctl-securebits", call_securebits, kPlain},
                                     {"prctl-keepcaps", call_keepcaps, kPlain},
                                     {"prctl-set-mm", call_set_mm, kWrong},
                                     {"prctl-ambient", call_ambient, kPlain},
                                     {"sched-fifo", call_fifo, kPlain},
                                     {"sched-deadline", call_deadline, kPlain},
                                     {"nice-lower", call_nice, kPlain},
                                     {"ioprio-realtime", call_ioprio, kPlain},
                                     {"rlimit-raise", call_rlimit, kPlain},
                                     {"personality-32", call_personality_32, kPlain},
                                     {"shmget", call_shmget, kPlain},
                                     {"msgget", call_msgget, kPlain},
                                     {"semget", call_semget, kPlain},
                                     {"mq-open", call_mq_open, kPlain},
                                     {0}};
