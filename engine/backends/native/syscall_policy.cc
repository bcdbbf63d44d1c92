#include "backends/native/syscall_policy.h"

#include <linux/netlink.h>
#include <netinet/in.h>  // IWYU pragma: keep (IPPROTO_*)
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "kernel/seccomp_filter.h"

namespace palmshed::backends::native {
namespace {

using kernel::ArgWord;
using kernel::Decision;
using kernel::FilterArch;
using kernel::FilterSpec;
using kernel::Verdict;

constexpr int kNone = -1;
constexpr std::uint32_t kFirstCommonSyscall = 424;  // From here all architectures count alike.

// Always closed. clone3 hides its flags behind a pointer that a filter cannot follow, so it answers
// ENOSYS and the C libraries use clone. Calls that no kernel has any more (create_module, ...) are
// here where they join two ranges.
constexpr ClosedCall kAlways[] = {
    // The whole machine.
    {"syslog", 103, 116, EPERM},
    {"vhangup", 153, 58, EPERM},
    {"modify_ldt", 154, kNone, EPERM},
    {"acct", 163, 89, EPERM},
    {"settimeofday", 164, 170, EPERM},
    {"clock_settime", 227, 112, EPERM},
    {"swapon", 167, 224, EPERM},
    {"swapoff", 168, 225, EPERM},
    {"reboot", 169, 142, EPERM},
    {"sethostname", 170, 161, EPERM},
    {"setdomainname", 171, 162, EPERM},
    {"iopl", 172, kNone, EPERM},
    {"ioperm", 173, kNone, EPERM},
    {"create_module", 174, kNone, EPERM},
    {"init_module", 175, 105, EPERM},
    {"delete_module", 176, 106, EPERM},
    {"get_kernel_syms", 177, kNone, EPERM},
    {"query_module", 178, kNone, EPERM},
    {"quotactl", 179, 60, EPERM},
    {"nfsservctl", 180, 42, EPERM},
    {"lookup_dcookie", 212, 18, EPERM},
    {"kexec_load", 246, 104, EPERM},
    {"finit_module", 313, 273, EPERM},
    {"kexec_file_load", 320, 294, EPERM},
    {"quotactl_fd", 443, 443, EPERM},
    // Mounts, roots and namespaces. chroot is of no use without a capability, and a way out of
    // openat2's RESOLVE_IN_ROOT idioms with one.
    {"pivot_root", 155, 41, EPERM},
    {"chroot", 161, 51, EPERM},
    {"mount", 165, 40, EPERM},
    {"umount2", 166, 39, EPERM},
    {"unshare", 272, 97, EPERM},
    {"setns", 308, 268, EPERM},
    {"open_tree", 428, 428, EPERM},
    {"move_mount", 429, 429, EPERM},
    {"fsopen", 430, 430, EPERM},
    {"fsconfig", 431, 431, EPERM},
    {"fsmount", 432, 432, EPERM},
    {"fspick", 433, 433, EPERM},
    {"clone3", 435, 435, ENOSYS},
    {"mount_setattr", 442, 442, EPERM},
    {"statmount", 457, 457, ENOSYS},
    {"listmount", 458, 458, ENOSYS},
    {"open_tree_attr", 467, 467, ENOSYS},
    // File handles find files without walking to them; fanotify watches whole file systems.
    {"fanotify_init", 300, 262, EPERM},
    {"name_to_handle_at", 303, 264, EPERM},
    {"open_by_handle_at", 304, 265, EPERM},
    // Kernel interfaces with a record of holes.
    {"add_key", 248, 217, ENOSYS},
    {"request_key", 249, 218, ENOSYS},
    {"keyctl", 250, 219, ENOSYS},
    {"perf_event_open", 298, 241, EPERM},
    {"bpf", 321, 280, EPERM},
    {"userfaultfd", 323, 282, EPERM},
    {"io_uring_setup", 425, 425, ENOSYS},
    {"io_uring_enter", 426, 426, ENOSYS},
    {"io_uring_register", 427, 427, ENOSYS},
};

// Closed where there are no namespaces: Landlock does not check these (landlock(7)), and the
// objects behind the numbers of System V and POSIX IPC are the host's.
constexpr ClosedCall kWithoutNamespaces[] = {
    {"chmod", 90, kNone, EPERM},        {"fchmodat", 268, 53, EPERM},
    {"fchmodat2", 452, 452, EPERM},     {"chown", 92, kNone, EPERM},
    {"lchown", 94, kNone, EPERM},       {"fchownat", 260, 54, EPERM},
    {"utime", 132, kNone, EPERM},       {"utimes", 235, kNone, EPERM},
    {"futimesat", 261, kNone, EPERM},   {"setxattr", 188, 5, EPERM},
    {"lsetxattr", 189, 6, EPERM},       {"removexattr", 197, 14, EPERM},
    {"lremovexattr", 198, 15, EPERM},   {"setxattrat", 463, 463, EPERM},
    {"removexattrat", 466, 466, EPERM}, {"file_setattr", 469, 469, EPERM},
    {"shmget", 29, 194, ENOSYS},        {"shmat", 30, 196, ENOSYS},
    {"shmctl", 31, 195, ENOSYS},        {"semget", 64, 190, ENOSYS},
    {"semop", 65, 193, ENOSYS},         {"semctl", 66, 191, ENOSYS},
    {"shmdt", 67, 197, ENOSYS},         {"msgget", 68, 186, ENOSYS},
    {"msgsnd", 69, 189, ENOSYS},        {"msgrcv", 70, 188, ENOSYS},
    {"msgctl", 71, 187, ENOSYS},        {"semtimedop", 220, 192, ENOSYS},
    {"mq_open", 240, 180, ENOSYS},      {"mq_unlink", 241, 181, ENOSYS},
};

// With a quota that is measured.
constexpr ClosedCall kPreallocate{"fallocate", 285, 47, EOPNOTSUPP};

bool WithoutNamespaces(FilterKind kind) {
  return kind == FilterKind::kFilteredOffline || kind == FilterKind::kFilteredOnline;
}

Decision Closed(int answer) { return Decision::Always(Verdict::Errno(answer)); }
Decision Allowed() { return Decision::Always(Verdict::Allow()); }

// Nothing but these words of an argument decides; what is not listed gets `otherwise`.
Decision ByWord(ArgWord word, int otherwise) {
  return {.otherwise = Verdict::Errno(otherwise), .argument = word};
}

// Flags of clone(2) that make a namespace. CLONE_NEWTIME is none of them: there its bit belongs to
// the exit signal.
constexpr std::uint32_t kNewNamespace = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                        CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

Decision Clone() { return ByWord({.index = 0, .mask = kNewNamespace}, EPERM).When({0}, Allowed()); }

// _IOW('X', 40, 42 and 57, struct space_resv), which the kernel keeps to itself: room for a range
// of a file, as XFS once had it, and the kernel now has it for every file system (fs/ioctl.c,
// ioctl_preallocate).
constexpr std::uint32_t kReserveSpace = 0x40305828;
constexpr std::uint32_t kReserveSpace64 = 0x4030582a;
constexpr std::uint32_t kZeroRange = 0x40305839;

// TIOCSTI types into the terminal of whoever started us, TIOCLINUX pastes into a console, TIOCSETD
// loads line disciplines. The kernel takes the requests of XFS for fallocate(2) on every file
// system (fs/ioctl.c, ioctl_preallocate).
Decision Ioctl(bool measured_disk) {
  Decision decision =
      Decision{.argument = {.index = 1}}.When({TIOCSTI, TIOCLINUX, TIOCSETD}, Closed(EPERM));
  if (!measured_disk) return decision;
  return std::move(decision).When({kReserveSpace, kReserveSpace64, kZeroRange}, Closed(EOPNOTSUPP));
}

constexpr ArgWord kFamily{.index = 0};
constexpr ArgWord kType{.index = 1, .mask = 0xf};  // Without SOCK_NONBLOCK and SOCK_CLOEXEC.
constexpr ArgWord kProtocol{.index = 2};

// No raw and packet sockets, and none of the protocols that a plain number would load a module for
// (SCTP, DCCP, L2TP).
Decision InternetSocket() {
  const Decision protocol =
      ByWord(kProtocol, EPROTONOSUPPORT)
          .When({0, IPPROTO_ICMP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMPV6, IPPROTO_MPTCP},
                Allowed());
  return ByWord(kType, EPERM).When({SOCK_STREAM, SOCK_DGRAM}, protocol);
}

Decision Socket(FilterKind kind) {
  Decision families = ByWord(kFamily, EAFNOSUPPORT);
  if (kind == FilterKind::kPrivate) families = std::move(families).When({AF_UNIX}, Allowed());
  if (kind == FilterKind::kFilteredOffline) return families;
  const Decision netlink = ByWord(kProtocol, EPROTONOSUPPORT).When({NETLINK_ROUTE}, Allowed());
  return std::move(families)
      .When({AF_INET, AF_INET6}, InternetSocket())
      .When({AF_NETLINK}, netlink);
}

Decision SocketPair(FilterKind kind) {
  const Decision connected = ByWord(kType, EPERM).When({SOCK_STREAM, SOCK_SEQPACKET}, Allowed());
  return ByWord(kFamily, EAFNOSUPPORT)
      .When({AF_UNIX}, kind == FilterKind::kPrivate ? Allowed() : connected);
}

// futimens(3) is utimensat without a path and works on a file that was opened for itself.
Decision UtimensAt() {
  const Decision low = ByWord({.index = 1}, EPERM).When({0}, Allowed());
  return ByWord({.index = 1, .high = true}, EPERM).When({0}, low);
}

// Limits of the caller itself; of others Landlock does not guard them.
Decision Prlimit() { return ByWord({.index = 0}, EPERM).When({0}, Allowed()); }

class PolicyBuilder {
 public:
  explicit PolicyBuilder(FilterArch arch) {
    spec_.arch = arch;
    // int 0x80 on x86-64, 32-bit programs on arm64: as a kernel without that entry.
    spec_.foreign = Verdict::Errno(ENOSYS);
  }

  void Add(int x86_64, int aarch64, const Decision& decision) {
    const int number = spec_.arch == FilterArch::kX86_64 ? x86_64 : aarch64;
    if (number == kNone) return;
    AddRange(static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number), decision);
  }

  void AddRange(std::uint32_t first, std::uint32_t last, const Decision& decision) {
    spec_.ranges.push_back({first, last, decision});
  }

  FilterSpec Build() && { return std::move(spec_); }

 private:
  FilterSpec spec_;
};

}  // namespace

std::vector<ClosedCall> ClosedCalls(FilterChoice choice) {
  std::vector<ClosedCall> calls(std::begin(kAlways), std::end(kAlways));
  if (WithoutNamespaces(choice.kind)) {
    calls.insert(calls.end(), std::begin(kWithoutNamespaces), std::end(kWithoutNamespaces));
  }
  if (choice.measured_disk) calls.push_back(kPreallocate);
  return calls;
}

std::size_t MaxFilterInstructions(FilterChoice choice, FilterArch arch) {
  const bool namespaces = !WithoutNamespaces(choice.kind);
  if (namespaces && arch == FilterArch::kX86_64) return 80;
  return (namespaces ? 85U : 110U) + (choice.measured_disk ? 5U : 0U);
}

FilterSpec FilterPolicy(FilterChoice choice, FilterArch arch) {
  const FilterKind kind = choice.kind;
  PolicyBuilder policy(arch);
  for (const ClosedCall& call : ClosedCalls(choice)) {
    policy.Add(call.x86_64, call.aarch64, Closed(call.answer));
  }
  policy.Add(56, 220, Clone());
  policy.Add(16, 29, Ioctl(choice.measured_disk));
  policy.Add(41, 198, Socket(kind));
  policy.Add(53, 199, SocketPair(kind));
  if (WithoutNamespaces(kind)) {
    policy.Add(280, 88, UtimensAt());
    policy.Add(302, 261, Prlimit());
  }
  // Numbers that no architecture has used so far: as above kNewestSyscall.
  const std::uint32_t unassigned = arch == FilterArch::kX86_64 ? 337 : 295;
  policy.AddRange(unassigned, kFirstCommonSyscall - 1, Closed(ENOSYS));
  policy.AddRange(kNewestSyscall + 1, std::numeric_limits<std::uint32_t>::max(), Closed(ENOSYS));
  return std::move(policy).Build();
}

std::vector<sock_filter> BuildFilter(FilterChoice choice, FilterArch arch) {
  std::vector<sock_filter> program = kernel::CompileFilter(FilterPolicy(choice, arch));
  // X  PALMSHED_CHECK(program.size() <= MaxFilterInstructions(choice, arch));
  return program;
}

}  // namespace palmshed::backends::native
