#include "backends/native/syscall_policy.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <netinet/in.h>  // IWYU pragma: keep (IPPROTO_*)
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "kernel/filter_test_support.h"
#include "kernel/seccomp_filter.h"

namespace palmshed::backends::native {
namespace {

using kernel::FilterArch;
using kernel::RunFilter;
using kernel::Verdict;

constexpr std::array kKinds = {FilterKind::kPrivate, FilterKind::kHostFiles,
                               FilterKind::kFilteredOffline, FilterKind::kFilteredOnline};
constexpr std::array kMeasured = {false, true};
constexpr std::array kArchs = {FilterArch::kX86_64, FilterArch::kAArch64};
constexpr std::uint64_t kHighHalf = 0xdeadbeef00000000;  // The kernel ignores it in an int.

std::uint32_t LibraryArch(FilterArch arch) {
  return arch == FilterArch::kX86_64 ? SCMP_ARCH_X86_64 : SCMP_ARCH_AARCH64;
}

int NumberOf(FilterArch arch, const char* name) {
  return seccomp_syscall_resolve_name_arch(LibraryArch(arch), name);
}

seccomp_data Call(FilterArch arch, int number, const std::vector<std::uint64_t>& args = {}) {
  seccomp_data call{};
  call.nr = number;
  call.arch = static_cast<std::uint32_t>(arch);
  std::ranges::copy(args, call.args);
  return call;
}

// The errno that the filter answers `name` with; 0 when it lets the call through.
int AnswerTo(FilterChoice kind, FilterArch arch, const char* name,
             const std::vector<std::uint64_t>& args = {}) {
  const auto value = RunFilter(BuildFilter(kind, arch), Call(arch, NumberOf(arch, name), args));
  if (!value) return -1;
  if (*value == SECCOMP_RET_ALLOW) return 0;
  EXPECT_EQ(*value & SECCOMP_RET_ACTION_FULL, SECCOMP_RET_ERRNO);
  return static_cast<int>(*value & SECCOMP_RET_DATA);
}

// Calls whose arguments decide.
bool DependsOnArguments(FilterKind kind, FilterArch arch, int number) {
  const bool filtered = kind == FilterKind::kFilteredOffline || kind == FilterKind::kFilteredOnline;
  for (const char* name : {"clone", "ioctl", "socket", "socketpair"}) {
    if (number == NumberOf(arch, name)) return true;
  }
  return filtered &&
         (number == NumberOf(arch, "utimensat") || number == NumberOf(arch, "prlimit64"));
}

bool KnownToLibrary(FilterArch arch, int number) {
  const std::unique_ptr<char, void (*)(void*)> name(
      seccomp_syscall_resolve_num_arch(LibraryArch(arch), number), std::free);
  return name != nullptr;
}

// The same list of closed calls as the established library compiles it.
std::vector<sock_filter> LibraryFilter(FilterChoice kind, FilterArch arch) {
  const std::unique_ptr<void, void (*)(void*)> context(seccomp_init(SCMP_ACT_ALLOW),
                                                       seccomp_release);
  seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
  seccomp_arch_remove(context.get(), SCMP_ARCH_NATIVE);
  seccomp_arch_add(context.get(), LibraryArch(arch));
  for (const ClosedCall& call : ClosedCalls(kind)) {
    // By the native number, which the library translates; some calls are newer than the library.
    const int number = seccomp_syscall_resolve_name(std::string(call.name).c_str());
    if (number == __NR_SCMP_ERROR) continue;
    EXPECT_EQ(seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(static_cast<unsigned>(call.answer)),
                               number, 0),
              0)
        << call.name;
  }
  const int file = memfd_create("filter", MFD_CLOEXEC);
  EXPECT_EQ(seccomp_export_bpf(context.get(), file), 0);
  std::vector<sock_filter> program(static_cast<std::size_t>(lseek(file, 0, SEEK_END)) /
                                   sizeof(sock_filter));
  const std::size_t bytes = program.size() * sizeof(sock_filter);
  EXPECT_EQ(pread(file, program.data(), bytes, 0), static_cast<ssize_t>(bytes));
  close(file);
  return program;
}

TEST(SyscallPolicy, KeepsToItsInstructionBudget) {
  EXPECT_LE(BuildFilter(FilterKind::kPrivate, FilterArch::kX86_64).size(), 80U);
  EXPECT_LE(BuildFilter(FilterKind::kHostFiles, FilterArch::kX86_64).size(), 80U);
  EXPECT_LE(BuildFilter({FilterKind::kHostFiles, true}, FilterArch::kX86_64).size(), 80U);
  for (const FilterKind kind : kKinds) {
    for (const FilterArch arch : kArchs) {
      for (const bool measured : kMeasured) {
        const std::size_t size = BuildFilter({kind, measured}, arch).size();
        std::printf("kind %d, %s, measured %d: %zu instructions\n", static_cast<int>(kind),
                    arch == FilterArch::kX86_64 ? "x86-64" : "arm64", measured, size);
        EXPECT_LE(size, MaxFilterInstructions({kind, measured}, arch));
      }
    }
  }
}

TEST(SyscallPolicy, NamesEachCallByItsRightNumber) {
  int checked = 0;
  for (const ClosedCall& call : ClosedCalls(FilterKind::kFilteredOffline)) {
    const std::string name(call.name);
    for (const FilterArch arch : kArchs) {
      const int known = NumberOf(arch, name.c_str());
      const int ours = arch == FilterArch::kX86_64 ? call.x86_64 : call.aarch64;
      // Negative: the library is older than the call, or the architecture does not have it.
      EXPECT_EQ(ours >= 0 && known >= 0 ? ours : known, known) << name;
      EXPECT_TRUE(ours >= 0 || known < 0) << name;
      checked += known >= 0;
    }
  }
  EXPECT_GT(checked, 130);
}

void ExpectAgreement(FilterChoice choice, FilterArch arch) {
  const auto ours = BuildFilter(choice, arch);
  const auto library = LibraryFilter(choice, arch);
  const int unassigned = arch == FilterArch::kX86_64 ? 337 : 295;
  int compared = 0;
  for (int number = 0; number <= static_cast<int>(kNewestSyscall); ++number) {
    if (DependsOnArguments(choice.kind, arch, number)) continue;
    if (number >= unassigned && number < 424) continue;
    if (!KnownToLibrary(arch, number)) continue;
    ++compared;
    const auto call = Call(arch, number);
    ASSERT_TRUE(RunFilter(library, call)) << number;
    ASSERT_EQ(RunFilter(ours, call), RunFilter(library, call))
        << "number " << number << " kind " << static_cast<int>(choice.kind);
  }
  EXPECT_GT(compared, 300);
}

TEST(SyscallPolicy, AgreesWithTheLibraryOnEveryNumber) {
  for (const FilterKind kind : kKinds) {
    for (const FilterArch arch : kArchs) {
      for (const bool measured : kMeasured) ExpectAgreement({kind, measured}, arch);
    }
  }
}

TEST(SyscallPolicy, TakesNoRoomInAdvanceWhereTheDiskIsMeasured) {
  constexpr std::uint64_t kRequests[] = {0x40305828, 0x4030582a, 0x40305839};
  for (const FilterKind kind : kKinds) {
    for (const FilterArch arch : kArchs) {
      EXPECT_EQ(AnswerTo({kind, true}, arch, "fallocate"), EOPNOTSUPP);
      EXPECT_EQ(AnswerTo(kind, arch, "fallocate"), 0);
      for (const std::uint64_t request : kRequests) {
        EXPECT_EQ(AnswerTo({kind, true}, arch, "ioctl", {3, request}), EOPNOTSUPP);
        EXPECT_EQ(AnswerTo({kind, true}, arch, "ioctl", {3, kHighHalf | request}), EOPNOTSUPP);
        EXPECT_EQ(AnswerTo(kind, arch, "ioctl", {3, request}), 0);
      }
      EXPECT_EQ(AnswerTo({kind, true}, arch, "ioctl", {3, TIOCSTI}), EPERM);
      EXPECT_EQ(AnswerTo({kind, true}, arch, "ioctl", {3, TCGETS}), 0);
      EXPECT_EQ(AnswerTo({kind, true}, arch, "ftruncate"), 0);
    }
  }
}

TEST(SyscallPolicy, AnswersUnknownNumbersAsAnOlderKernelWould) {
  const std::uint32_t enosys = Verdict::Errno(ENOSYS).value;
  for (const FilterKind kind : kKinds) {
    for (const FilterArch arch : kArchs) {
      const auto program = BuildFilter(kind, arch);
      for (const int number :
           {337, 400, 423, int{kNewestSyscall} + 1, 1023, 0x40000000 | 41, 0x7fffffff, -1}) {
        EXPECT_EQ(RunFilter(program, Call(arch, number)), enosys) << number;
      }
      EXPECT_NE(RunFilter(program, Call(arch, 424)), enosys);
      EXPECT_EQ(RunFilter(program, Call(arch, 0)), SECCOMP_RET_ALLOW);
    }
  }
}

TEST(SyscallPolicy, AnswersForeignEntriesWithoutKilling) {
  const auto program = BuildFilter(FilterKind::kPrivate, FilterArch::kX86_64);
  for (const std::uint32_t arch :
       std::initializer_list<std::uint32_t>{AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_AARCH64}) {
    seccomp_data call{};
    call.arch = arch;
    call.nr = 20;  // getpid of i386
    EXPECT_EQ(RunFilter(program, call), Verdict::Errno(ENOSYS).value);
  }
}

TEST(SyscallPolicy, LeavesDebuggersAndAllocatorsAlone) {
  for (const FilterArch arch : kArchs) {
    for (const char* name : {"ptrace", "process_vm_readv", "pidfd_getfd", "personality", "seccomp",
                             "memfd_create", "landlock_create_ruleset", "futex", "rseq", "prctl",
                             "execve", "mmap", "getrandom", "inotify_add_watch", "sync"}) {
      EXPECT_EQ(AnswerTo(FilterKind::kPrivate, arch, name), 0) << name;
    }
  }
}

TEST(SyscallPolicy, RefusesCloneIntoAnyNamespace) {
  constexpr std::uint64_t kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                                    CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS;
  for (const FilterArch arch : kArchs) {
    const auto answer = [&](std::uint64_t flags) {
      return AnswerTo(FilterKind::kPrivate, arch, "clone", {flags});
    };
    EXPECT_EQ(answer(SIGCHLD), 0);
    EXPECT_EQ(answer(CLONE_VM | CLONE_VFORK | SIGCHLD), 0);
    EXPECT_EQ(answer(kThread), 0);
    EXPECT_EQ(answer(kHighHalf | SIGCHLD), 0);
    for (const std::uint64_t flag : std::initializer_list<std::uint64_t>{
             CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID,
             CLONE_NEWNET}) {
      EXPECT_EQ(answer(flag | SIGCHLD), EPERM) << flag;
      EXPECT_EQ(answer(kHighHalf | flag | kThread), EPERM) << flag;
    }
    EXPECT_EQ(AnswerTo(FilterKind::kPrivate, arch, "clone3"), ENOSYS);
  }
}

TEST(SyscallPolicy, RefusesTerminalInjectionWhateverTheHighHalf) {
  for (const FilterArch arch : kArchs) {
    const auto answer = [&](std::uint64_t request) {
      return AnswerTo(FilterKind::kPrivate, arch, "ioctl", {0, request});
    };
    for (const std::uint64_t request :
         std::initializer_list<std::uint64_t>{TIOCSTI, TIOCLINUX, TIOCSETD}) {
      EXPECT_EQ(answer(request), EPERM);
      EXPECT_EQ(answer(kHighHalf | request), EPERM);
    }
    EXPECT_EQ(answer(TCGETS), 0);
    EXPECT_EQ(answer(TIOCGWINSZ), 0);
    EXPECT_EQ(answer(FIONREAD), 0);
  }
}

struct SocketCase {
  std::uint64_t family, type, protocol;
  int with_own_files;  // Answers of kPrivate, kHostFiles, kFilteredOffline, kFilteredOnline.
  int with_host_files;
  int offline;
  int online;
};

TEST(SyscallPolicy, AllowsOnlyTheSocketsThatTheNetworkModeHas) {
  constexpr int kNoFamily = EAFNOSUPPORT;
  constexpr int kNoProtocol = EPROTONOSUPPORT;
  const SocketCase cases[] = {
      {AF_UNIX, SOCK_STREAM, 0, 0, kNoFamily, kNoFamily, kNoFamily},
      {AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, 0, kNoFamily, kNoFamily, kNoFamily},
      {AF_INET, SOCK_STREAM, 0, 0, 0, kNoFamily, 0},
      {AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP, 0, 0, kNoFamily, 0},
      {AF_INET6, SOCK_DGRAM, IPPROTO_UDP, 0, 0, kNoFamily, 0},
      {AF_INET6, SOCK_STREAM, IPPROTO_MPTCP, 0, 0, kNoFamily, 0},
      {AF_INET, SOCK_DGRAM, IPPROTO_ICMP, 0, 0, kNoFamily, 0},
      {AF_INET, SOCK_RAW, IPPROTO_ICMP, EPERM, EPERM, kNoFamily, EPERM},
      {AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW, EPERM, EPERM, kNoFamily, EPERM},
      {AF_INET, SOCK_PACKET, 0x300, EPERM, EPERM, kNoFamily, EPERM},
      {AF_INET6, SOCK_SEQPACKET, IPPROTO_SCTP, EPERM, EPERM, kNoFamily, EPERM},
      {AF_INET, SOCK_STREAM, IPPROTO_SCTP, kNoProtocol, kNoProtocol, kNoFamily, kNoProtocol},
      {AF_INET, SOCK_DGRAM, 115 /* L2TP */, kNoProtocol, kNoProtocol, kNoFamily, kNoProtocol},
      {AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, 0, 0, kNoFamily, 0},
      {AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_ROUTE, 0, 0, kNoFamily, 0},
      {AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER, kNoProtocol, kNoProtocol, kNoFamily, kNoProtocol},
      {AF_NETLINK, SOCK_DGRAM, NETLINK_KOBJECT_UEVENT, kNoProtocol, kNoProtocol, kNoFamily,
       kNoProtocol},
  };
  for (const FilterArch arch : kArchs) {
    for (const SocketCase& one : cases) {
      for (const std::uint64_t garbage : {std::uint64_t{0}, kHighHalf}) {
        const auto answer = [&](FilterKind kind) {
          return AnswerTo(kind, arch, "socket",
                          {garbage | one.family, garbage | one.type, garbage | one.protocol});
        };
        const std::string where = std::to_string(one.family) + " " + std::to_string(one.type) +
                                  " " + std::to_string(one.protocol);
        EXPECT_EQ(answer(FilterKind::kPrivate), one.with_own_files) << where;
        EXPECT_EQ(answer(FilterKind::kHostFiles), one.with_host_files) << where;
        EXPECT_EQ(answer(FilterKind::kFilteredOffline), one.offline) << where;
        EXPECT_EQ(answer(FilterKind::kFilteredOnline), one.online) << where;
      }
    }
  }
}

TEST(SyscallPolicy, KnowsNoOtherSocketFamily) {
  for (const FilterKind kind : kKinds) {
    for (std::uint64_t family = 0; family < 64; ++family) {
      if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK) {
        continue;
      }
      EXPECT_EQ(AnswerTo(kind, kernel::kHostArch, "socket", {family, SOCK_DGRAM, 0}), EAFNOSUPPORT)
          << family;
    }
  }
}

TEST(SyscallPolicy, KeepsSocketPairsThatCannotBeConnectedAnew) {
  for (const FilterKind kind : kKinds) {
    const auto answer = [&](std::uint64_t family, std::uint64_t type) {
      return AnswerTo(kind, kernel::kHostArch, "socketpair", {kHighHalf | family, type});
    };
    EXPECT_EQ(answer(AF_UNIX, SOCK_STREAM), 0);
    EXPECT_EQ(answer(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC), 0);
    const int datagram = kind == FilterKind::kPrivate ? 0 : EPERM;
    EXPECT_EQ(answer(AF_UNIX, SOCK_DGRAM), datagram);
    EXPECT_EQ(answer(AF_UNIX, SOCK_RAW), datagram);  // The kernel makes it a SOCK_DGRAM.
    EXPECT_EQ(answer(AF_TIPC, SOCK_STREAM), EAFNOSUPPORT);
  }
}

TEST(SyscallPolicy, WithoutNamespacesChangesNoTimesByPathAndNoOtherProcessLimits) {
  for (const FilterKind kind : {FilterKind::kFilteredOffline, FilterKind::kFilteredOnline}) {
    for (const FilterArch arch : kArchs) {
      EXPECT_EQ(AnswerTo(kind, arch, "utimensat", {5, 0}), 0);
      EXPECT_EQ(AnswerTo(kind, arch, "utimensat", {5, 0x1000}), EPERM);
      EXPECT_EQ(AnswerTo(kind, arch, "utimensat", {5, 0x7f0000000000}), EPERM);
      EXPECT_EQ(AnswerTo(kind, arch, "prlimit64", {0}), 0);
      EXPECT_EQ(AnswerTo(kind, arch, "prlimit64", {4711}), EPERM);
      EXPECT_EQ(AnswerTo(kind, arch, "fchmod", {5}), 0);
    }
  }
  EXPECT_EQ(AnswerTo(FilterKind::kPrivate, kernel::kHostArch, "utimensat", {5, 0x1000}), 0);
  EXPECT_EQ(AnswerTo(FilterKind::kPrivate, kernel::kHostArch, "prlimit64", {4711}), 0);
}

}  // namespace
}  // namespace palmshed::backends::native
