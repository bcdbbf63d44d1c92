#include "faults/errors.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace palmshed::tests {
namespace {

// Newer than the headers of Debian 12.
constexpr long kFchmodat2 = 452;
constexpr long kOpenTreeAttr = 467;

/// The counter of an eventfd(2) or timerfd_create(2), which takes and gives that always.
constexpr std::uint64_t kCounterBytes = 8;

struct Entry {
  long call;
  std::string_view name;
  std::vector<int> errors;
};

// Left out: EINTR, since every thread of the engine blocks all signals and the helpers have no
// handlers; EBADF, EFAULT and EINVAL of a caller's own mistakes; what only close(2) could say.
const std::vector<Entry>& Table() {
  static const std::vector<Entry> kTable{
      // Processes and programs.
      {SYS_clone, "clone", {EAGAIN, ENOMEM, EPERM, ENOSPC}},
      {SYS_clone3, "clone3", {EAGAIN, ENOMEM, EPERM, ENOSYS}},
      {SYS_vfork, "vfork", {EAGAIN, ENOMEM}},
      {SYS_fork, "fork", {EAGAIN, ENOMEM}},
      {SYS_execve, "execve", {EACCES, ENOMEM, EAGAIN, ENFILE}},
      {SYS_execveat, "execveat", {EACCES, ENOMEM, EAGAIN, ENFILE}},
      {SYS_unshare, "unshare", {EPERM, ENOMEM, ENOSPC}},
      {SYS_setns, "setns", {EPERM, ENOMEM}},
      {SYS_wait4, "wait4", {}},
      {SYS_waitid, "waitid", {}},
      {SYS_exit, "exit", {}},
      {SYS_exit_group, "exit_group", {}},
      {SYS_kill, "kill", {EPERM}},
      {SYS_tgkill, "tgkill", {}},
      {SYS_pidfd_open, "pidfd_open", {EMFILE, ENFILE, ENOMEM}},
      {SYS_pidfd_send_signal, "pidfd_send_signal", {}},
      {SYS_setsid, "setsid", {EPERM}},
      // What a process is.
      {SYS_prctl, "prctl", {EPERM}},
      {SYS_capset, "capset", {EPERM}},
      {SYS_capget, "capget", {EPERM}},
      {SYS_seccomp, "seccomp", {ENOMEM, EACCES, EINVAL}},
      {SYS_landlock_create_ruleset, "landlock_create_ruleset", {EMFILE, ENOMEM, EOPNOTSUPP}},
      {SYS_landlock_add_rule, "landlock_add_rule", {ENOMEM, EPERM}},
      {SYS_landlock_restrict_self, "landlock_restrict_self", {ENOMEM, EPERM, E2BIG}},
      {SYS_setresuid, "setresuid", {EAGAIN, EPERM}},
      {SYS_setresgid, "setresgid", {EPERM}},
      {SYS_setuid, "setuid", {EAGAIN, EPERM}},
      {SYS_setgid, "setgid", {EPERM}},
      {SYS_setgroups, "setgroups", {EPERM, ENOMEM}},
      {SYS_prlimit64, "prlimit64", {EPERM}},
      {SYS_setrlimit, "setrlimit", {EPERM}},
      {SYS_keyctl, "keyctl", {EDQUOT, ENOMEM}},
      {SYS_sethostname, "sethostname", {EPERM}},
      {SYS_setpriority, "setpriority", {EPERM}},
      {SYS_ioprio_set, "ioprio_set", {EPERM}},
      {SYS_sched_setaffinity, "sched_setaffinity", {EPERM}},
      {SYS_sched_setscheduler, "sched_setscheduler", {EPERM}},
      {SYS_personality, "personality", {EPERM}},
      {SYS_umask, "umask", {}},
      {SYS_sysinfo, "sysinfo", {}},
      {SYS_getgroups, "getgroups", {}},
      {SYS_arch_prctl, "arch_prctl", {}},
      {SYS_rt_sigaction, "rt_sigaction", {}},
      {SYS_perf_event_open, "perf_event_open", {EMFILE, EACCES, ENOMEM, EBUSY}},
      // Mounts.
      {SYS_mount, "mount", {EPERM, ENOMEM, ENOSPC}},
      {SYS_umount2, "umount2", {EBUSY, EPERM}},
      {SYS_pivot_root, "pivot_root", {EBUSY, EPERM}},
      {SYS_open_tree, "open_tree", {EPERM, ENOMEM, EMFILE, ENOSPC}},
      {kOpenTreeAttr, "open_tree_attr", {EPERM, ENOMEM, EMFILE}},
      {SYS_move_mount, "move_mount", {EPERM, ENOMEM, ENOSPC}},
      {SYS_mount_setattr, "mount_setattr", {EPERM, ENOMEM}},
      {SYS_fsopen, "fsopen", {EMFILE, EPERM, ENOMEM}},
      {SYS_fsconfig, "fsconfig", {EPERM, ENOMEM}},
      {SYS_fsmount, "fsmount", {EPERM, ENOMEM, EMFILE}},
      // Descriptors.
      {SYS_openat, "openat", {EMFILE, ENFILE, ENOMEM, EACCES}},
      {SYS_open, "open", {EMFILE, ENFILE, ENOMEM, EACCES}},
      {SYS_openat2, "openat2", {EMFILE, ENFILE, ENOMEM, EACCES}},
      {SYS_pipe2, "pipe2", {EMFILE, ENFILE}},
      {SYS_socketpair, "socketpair", {EMFILE, ENFILE, ENOBUFS}},
      {SYS_socket, "socket", {EMFILE, ENFILE, ENOBUFS}},
      {SYS_memfd_create, "memfd_create", {EMFILE, ENFILE, ENOMEM}},
      {SYS_eventfd2, "eventfd2", {EMFILE, ENFILE, ENOMEM}},
      {SYS_epoll_create1, "epoll_create1", {EMFILE, ENFILE, ENOMEM}},
      {SYS_timerfd_create, "timerfd_create", {EMFILE, ENFILE, ENOMEM}},
      {SYS_signalfd4, "signalfd4", {EMFILE, ENFILE, ENOMEM}},
      {SYS_inotify_init1, "inotify_init1", {EMFILE, ENFILE, ENOMEM}},
      {SYS_inotify_add_watch, "inotify_add_watch", {ENOSPC, ENOMEM}},
      {SYS_epoll_ctl, "epoll_ctl", {ENOMEM, ENOSPC}},
      {SYS_timerfd_settime, "timerfd_settime", {}},
      {SYS_dup, "dup", {EMFILE}},
      {SYS_dup2, "dup2", {}},
      {SYS_dup3, "dup3", {EBUSY}},
      {SYS_fcntl, "fcntl", {EMFILE}},
      {SYS_flock, "flock", {ENOLCK}},
      {SYS_close, "close", {}},
      {SYS_close_range, "close_range", {ENOMEM}},
      {SYS_ioctl, "ioctl", {ENOMEM}},
      // Waiting and messages.
      {SYS_poll, "poll", {ENOMEM}},
      {SYS_ppoll, "ppoll", {ENOMEM}},
      {SYS_epoll_wait, "epoll_wait", {}},
      {SYS_epoll_pwait, "epoll_pwait", {}},
      {SYS_sendmsg, "sendmsg", {ENOBUFS, ENOMEM}},
      {SYS_sendto, "sendto", {ENOBUFS, ENOMEM}},
      {SYS_recvmsg, "recvmsg", {ENOMEM}},
      {SYS_recvfrom, "recvfrom", {ENOMEM}},
      {SYS_setsockopt, "setsockopt", {ENOMEM}},
      {SYS_connect, "connect", {EADDRNOTAVAIL, ENOBUFS}},
      {SYS_bind, "bind", {EADDRINUSE, ENOMEM}},
      {SYS_listen, "listen", {EADDRINUSE}},
      {SYS_getsockname, "getsockname", {ENOBUFS}},
      {SYS_shutdown, "shutdown", {}},
      // Files.
      {SYS_read, "read", {EIO, ENOMEM}},
      {SYS_pread64, "pread64", {EIO, ENOMEM}},
      {SYS_write, "write", {ENOSPC, EIO, EPERM}},
      {SYS_pwrite64, "pwrite64", {ENOSPC, EIO}},
      {SYS_writev, "writev", {ENOSPC, EIO}},
      {SYS_mkdirat, "mkdirat", {ENOSPC, EDQUOT, EACCES, EMLINK}},
      {SYS_mkdir, "mkdir", {ENOSPC, EDQUOT, EACCES, EMLINK}},
      {SYS_unlinkat, "unlinkat", {EBUSY, EIO}},
      {SYS_unlink, "unlink", {EBUSY, EIO}},
      {SYS_rmdir, "rmdir", {EBUSY, EIO}},
      {SYS_renameat, "renameat", {ENOSPC, EIO}},
      {SYS_renameat2, "renameat2", {ENOSPC, EIO}},
      {SYS_linkat, "linkat", {ENOSPC, EMLINK}},
      {SYS_symlinkat, "symlinkat", {ENOSPC}},
      {SYS_mknodat, "mknodat", {ENOSPC, EPERM}},
      {SYS_fchown, "fchown", {EPERM, EDQUOT, EIO}},
      {SYS_fchownat, "fchownat", {EPERM, EIO}},
      {SYS_fchmod, "fchmod", {EPERM, EIO}},
      {SYS_fchmodat, "fchmodat", {EPERM, EIO}},
      {kFchmodat2, "fchmodat2", {ENOSYS, EPERM, EIO}},
      {SYS_chmod, "chmod", {EPERM, EIO}},
      {SYS_utimensat, "utimensat", {EPERM, EIO}},
      {SYS_fstat, "fstat", {ENOMEM}},
      {SYS_newfstatat, "newfstatat", {ENOMEM, EACCES}},
      {SYS_statx, "statx", {ENOMEM, EACCES}},
      {SYS_statfs, "statfs", {ENOMEM, EIO}},
      {SYS_fstatfs, "fstatfs", {EIO}},
      {SYS_faccessat, "faccessat", {ENOMEM, EIO}},
      {SYS_faccessat2, "faccessat2", {ENOMEM, EIO}},
      {SYS_access, "access", {ENOMEM, EIO}},
      {SYS_readlink, "readlink", {ENOMEM, EIO}},
      {SYS_readlinkat, "readlinkat", {ENOMEM, EIO}},
      {SYS_getdents64, "getdents64", {EIO, ENOMEM}},
      {SYS_getcwd, "getcwd", {ENOMEM}},
      {SYS_chdir, "chdir", {EACCES, ENOMEM}},
      {SYS_fchdir, "fchdir", {EACCES}},
      {SYS_copy_file_range, "copy_file_range", {EXDEV, ENOSPC, EIO, ENOMEM}},
      {SYS_ftruncate, "ftruncate", {ENOSPC, EIO}},
      {SYS_fallocate, "fallocate", {ENOSPC, EIO}},
      {SYS_lseek, "lseek", {}},
      {SYS_getrandom, "getrandom", {}},
      // Memory.
      {SYS_mmap, "mmap", {ENOMEM}},
      {SYS_mprotect, "mprotect", {ENOMEM}},
      {SYS_nanosleep, "nanosleep", {}},
      {SYS_clock_nanosleep, "clock_nanosleep", {}},
  };
  return kTable;
}

const Entry* Find(long call) {
  const auto found = std::ranges::find(Table(), call, &Entry::call);
  return found == Table().end() ? nullptr : &*found;
}

bool CanFail(const Call& call) {
  const std::uint64_t second = call.arguments[1];
  switch (call.number) {
    case SYS_epoll_ctl:
      return second == EPOLL_CTL_ADD;
    case SYS_landlock_create_ruleset:
      return call.arguments[2] == 0;  // Else it asks for the version only, which takes nothing.
    case SYS_fcntl:
      return second == F_DUPFD || second == F_DUPFD_CLOEXEC;
    case SYS_read:
    case SYS_write:
      return call.arguments[2] != kCounterBytes;
    default:
      return true;
  }
}

}  // namespace

std::span<const int> ErrorsOf(const Call& call) {
  const Entry* const entry = Find(call.number);
  return entry == nullptr || !CanFail(call) ? std::span<const int>() : entry->errors;
}

bool IsKnown(long call) { return Find(call) != nullptr; }

std::string NameOf(long call) {
  const Entry* const entry = Find(call);
  return entry == nullptr ? std::to_string(call) : std::string(entry->name);
}

}  // namespace palmshed::tests
