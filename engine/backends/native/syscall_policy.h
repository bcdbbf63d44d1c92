// Which system calls a sandbox may make. The list closes what contained programs never need and
// attackers do: new namespaces and mounts, kernel interfaces with a record of holes (io_uring, bpf,
// userfaultfd, keyrings, exotic socket families), whatever acts on the whole machine, and terminal
// input injection. It is a second wall: the namespaces, the dropped capabilities and Landlock stand
// without it.
//
// How a closed call answers decides whether programs cope. ENOSYS where libraries have a fallback
// for older kernels (clone3, io_uring, keyrings, statmount), EPERM where they expect an
// unprivileged user to be refused (mount, bpf, perf_event_open), the errno of a kernel without the
// protocol for sockets. Nothing is killed: a probe must not end the program that makes it.
//
// Left open on purpose: ptrace, process_vm_*, pidfd_getfd and personality (debuggers, sanitizers,
// strace; the processes of one sandbox trust each other), memfd_*, seccomp and landlock_* (programs
// may confine themselves further), userland's uretprobe trampoline.
#pragma once

#include <linux/filter.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernel/seccomp_filter.h"

namespace palmshed::backends::native {

/// What stands around the sandbox besides the filter.
enum class FilterKind : std::uint8_t {
  /// Its own file view and its own or a scoped network: every socket it can name is its own.
  kPrivate,
  /// The host's files can be seen, so sockets bound to paths must be out of reach: no AF_UNIX but
  /// socketpair(2), and that not as SOCK_DGRAM, whose ends can be connected to a path anew.
  kHostFiles,
  /// No namespaces, network disabled: as kHostFiles, no socket family at all, and closed as well
  /// is what Landlock does not cover of the host's files and processes: changes of mode, owner,
  /// times and attributes by path, System V and POSIX message queue objects, other processes'
  /// limits.
  kFilteredOffline,
  /// As kFilteredOffline with AF_INET, AF_INET6 and NETLINK_ROUTE.
  kFilteredOnline,
};

inline constexpr std::size_t kFilterKinds = 4;

/// A filter as it is chosen for a sandbox.
struct FilterChoice {
  // NOLINTNEXTLINE(google-explicit-constructor): a kind alone is the usual choice.
  FilterChoice(FilterKind chosen, bool measured = false) : kind(chosen), measured_disk(measured) {}

  FilterKind kind;
  /// The disk quota is measured, so room must be taken by writing: fallocate(2) is closed, by all
  /// of its names. Room for many files would be taken at once otherwise, faster than anybody looks.
  /// The answer is that of a file system that cannot do it, for which programs are prepared.
  bool measured_disk;
};

/// The policy as ranges of numbers, for CompileFilter.
kernel::FilterSpec FilterPolicy(FilterChoice choice, kernel::FilterArch arch = kernel::kHostArch);

/// The program to load, at most MaxFilterInstructions long.
std::vector<sock_filter> BuildFilter(FilterChoice choice,
                                     kernel::FilterArch arch = kernel::kHostArch);

/// Loading costs time per instruction and every sandbox pays it.
/// What x86-64 may take with namespaces is 80; the rung without them has more to close.
std::size_t MaxFilterInstructions(FilterChoice choice, kernel::FilterArch arch = kernel::kHostArch);

/// Number of the newest call that was judged (file_setattr, Linux 6.17). Numbers above it answer
/// ENOSYS: a call that nobody has looked at stays closed, and programs take it for an older kernel.
/// So do the numbers of the x32 ABI, which have bit 30 set.
inline constexpr std::uint32_t kNewestSyscall = 469;

/// A closed call's place in the table; -1 where the architecture lacks it.
struct ClosedCall {
  std::string_view name;
  int x86_64;
  int aarch64;
  int answer;  ///< errno
};

/// The calls that are closed whatever their arguments.
std::vector<ClosedCall> ClosedCalls(FilterChoice choice);

}  // namespace palmshed::backends::native
