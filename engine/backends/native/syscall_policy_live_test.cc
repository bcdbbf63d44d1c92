// The filter in the kernel: each call is made without it first, as the control.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <netinet/in.h>  // IWYU pragma: keep (IPPROTO_*)
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "backends/native/fake_tree.h"
#include "backends/native/syscall_policy.h"
#include "kernel/filter_test_support.h"

namespace palmshed::backends::native {
namespace {

constexpr int kBroken = 255;

// errno of `call` (0: it succeeded), made in a process of its own.
int Plain(const std::function<long()>& call) {
  return kernel::InForkedProcess([&] { return call() < 0 ? errno : 0; });
}

int Filtered(FilterKind kind, const std::function<long()>& call) {
  const auto program = BuildFilter(kind);
  return kernel::InForkedProcess([&] {
    if (!kernel::LoadFilter(program)) return kBroken;
    return call() < 0 ? errno : 0;
  });
}

int Filtered(const std::function<long()>& call) { return Filtered(FilterKind::kPrivate, call); }

std::function<long()> Socket(int family, int type, int protocol) {
  return [=] { return socket(family, type, protocol); };
}

sockaddr_un PathAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return address;
}

TEST(FilterInKernel, ClosesMountsAndNamespaces) {
  // Controls: without the filter the arguments are looked at, so the errno is another one.
  const auto fsopen_nonsense = [] { return syscall(SYS_fsopen, "no such file system", 0); };
  EXPECT_EQ(Plain(fsopen_nonsense), geteuid() == 0 ? ENODEV : EPERM);
  EXPECT_EQ(Filtered(fsopen_nonsense), EPERM);
  const auto unshare_nothing = [] { return unshare(0); };
  EXPECT_EQ(Plain(unshare_nothing), 0);
  EXPECT_EQ(Filtered(unshare_nothing), EPERM);
  const auto setns_of_nothing = [] { return setns(-1, 0); };
  EXPECT_EQ(Plain(setns_of_nothing), EBADF);
  EXPECT_EQ(Filtered(setns_of_nothing), EPERM);
  const auto open_tree_here = [] { return syscall(SYS_open_tree, AT_FDCWD, "/", 0); };
  EXPECT_EQ(Plain(open_tree_here), 0);
  EXPECT_EQ(Filtered(open_tree_here), EPERM);
}

TEST(FilterInKernel, ClosesNewUserNamespacesByEveryRoute) {
  const auto by_clone = [] {
    const long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) _exit(0);
    return child;
  };
  if (Plain(by_clone) != 0) GTEST_SKIP() << "clone(CLONE_NEWUSER) is refused on this host";
  EXPECT_EQ(Filtered(by_clone), EPERM);
  const auto by_unshare = [] { return unshare(CLONE_NEWUSER); };
#ifdef PALMSHED_SANITIZED_THREAD
  // The sanitizer runs a thread of its own, and with a second thread the call fails (unshare(2)).
  EXPECT_EQ(Plain(by_unshare), EINVAL);
#else
  EXPECT_EQ(Plain(by_unshare), 0);
#endif
  EXPECT_EQ(Filtered(by_unshare), EPERM);
}

TEST(FilterInKernel, HidesCallsThatProgramsCanDoWithout) {
  const auto clone3_nothing = [] { return syscall(SYS_clone3, nullptr, 0); };
  EXPECT_EQ(Plain(clone3_nothing), EINVAL);
  EXPECT_EQ(Filtered(clone3_nothing), ENOSYS);
  const auto keyctl_id = [] { return syscall(SYS_keyctl, 0, -3 /* session keyring */, 0); };
  EXPECT_NE(Plain(keyctl_id), ENOSYS);
  EXPECT_EQ(Filtered(keyctl_id), ENOSYS);
  const auto uring_enter = [] { return syscall(SYS_io_uring_enter, -1, 0, 0, 0, nullptr, 0); };
  EXPECT_NE(Plain(uring_enter), ENOSYS);
  EXPECT_EQ(Filtered(uring_enter), ENOSYS);
}

TEST(FilterInKernel, ThreadsAndChildrenStillStart) {
  EXPECT_EQ(Filtered([] {
              int seen = 0;
              std::thread([&] { seen = 1; }).join();
              return seen == 1 ? 0 : -1;
            }),
            0);
  EXPECT_EQ(Filtered([] {
              const pid_t child = fork();
              if (child == 0) {
                ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
                raise(SIGSTOP);
                _exit(0);
              }
              int status = 0;
              waitpid(child, &status, 0);
              kill(child, SIGKILL);
              waitpid(child, nullptr, 0);
              return WIFSTOPPED(status) ? 0 : -1;  // NOLINT(misc-include-cleaner)
            }),
            0);
}

TEST(FilterInKernel, RefusesTerminalInjection) {
  const int terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0) GTEST_SKIP() << "no pseudo terminals: " << std::strerror(errno);
  const auto inject = [&](unsigned long high) {
    return [=] { return syscall(SYS_ioctl, terminal, high | TIOCSTI, "x"); };
  };
  EXPECT_EQ(Filtered(inject(0)), EPERM);
  EXPECT_EQ(Filtered(inject(0xdeadbeef00000000)), EPERM);
  const auto set_discipline = [&] {
    const int tty = 0;
    return ioctl(terminal, TIOCSETD, &tty);
  };
  EXPECT_EQ(Plain(set_discipline), 0);
  EXPECT_EQ(Filtered(set_discipline), EPERM);
  const auto size = [&] {
    winsize window{};
    return ioctl(terminal, TIOCGWINSZ, &window);
  };
  EXPECT_EQ(Filtered(size), 0);
  close(terminal);
}

TEST(FilterInKernel, ClosesSocketsThatBypassANetworkRule) {
  EXPECT_EQ(Filtered(Socket(AF_UNIX, SOCK_STREAM, 0)), 0);
  EXPECT_EQ(Filtered(Socket(AF_INET, SOCK_STREAM, 0)), Plain(Socket(AF_INET, SOCK_STREAM, 0)));
  EXPECT_EQ(Filtered(Socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)), 0);
  const auto uevents = Socket(AF_NETLINK, SOCK_DGRAM, NETLINK_KOBJECT_UEVENT);
  EXPECT_EQ(Plain(uevents), 0);
  EXPECT_EQ(Filtered(uevents), EPROTONOSUPPORT);
  EXPECT_EQ(Filtered(Socket(AF_VSOCK, SOCK_STREAM, 0)), EAFNOSUPPORT);
  EXPECT_EQ(Filtered(Socket(AF_PACKET, SOCK_RAW, 0)), EAFNOSUPPORT);
  EXPECT_EQ(Filtered(Socket(AF_ALG, SOCK_SEQPACKET, 0)), EAFNOSUPPORT);
  const auto raw = Socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
  if (geteuid() == 0) {
    EXPECT_EQ(Plain(raw), 0);
  }
  EXPECT_EQ(Filtered(raw), EPERM);
}

#ifdef __x86_64__
long CallInt80(long number, long first, long second, long third) {
  long result = 0;
  asm volatile("int $0x80"
               : "=a"(result)
               : "a"(number), "b"(first), "c"(second), "d"(third)
               : "memory", "r8", "r9", "r10", "r11");
  errno = result < 0 ? static_cast<int>(-result) : 0;
  return result < 0 ? -1 : result;
}

TEST(FilterInKernel, ClosesTheOtherAbisOfX86) {  // C080
  constexpr long kSocketOfI386 = 359;
  const auto by_int80 = [] { return CallInt80(kSocketOfI386, AF_INET, SOCK_STREAM, 0); };
  const auto getpid_by_int80 = [] { return CallInt80(20, 0, 0, 0); };
  EXPECT_EQ(Filtered(by_int80), ENOSYS);
  EXPECT_EQ(Filtered(getpid_by_int80), ENOSYS);
  if (Plain(getpid_by_int80) == 0) {  // Not on a kernel without the entry.
    EXPECT_EQ(Plain(by_int80), 0);
  }
  const auto by_x32 = [] { return syscall(0x40000000L | SYS_socket, AF_INET, SOCK_STREAM, 0); };
  EXPECT_EQ(Filtered(by_x32), ENOSYS);
}
#endif

TEST(FilterInKernel, WithHostFilesNoPathSocketIsReached) {
  const FakeTree scratch;
  const sockaddr_un address = PathAddress(scratch.At("/host.sock"));
  const auto* peer = reinterpret_cast<const sockaddr*>(&address);
  const int host = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(host, peer, sizeof address), 0);
  const auto by_socket = [&] {
    const int ours = socket(AF_UNIX, SOCK_DGRAM, 0);
    return ours < 0 ? -1 : sendto(ours, "x", 1, 0, peer, sizeof address);
  };
  const auto by_pair = [&](int type) {
    return [=] {
      int ends[2];
      if (socketpair(AF_UNIX, type, 0, ends) < 0) return -1L;
      return long{sendto(ends[0], "x", 1, 0, peer, sizeof(sockaddr_un))};
    };
  };
  for (const FilterKind kind : {FilterKind::kHostFiles, FilterKind::kFilteredOffline}) {
    EXPECT_EQ(Plain(by_socket), 0);
    EXPECT_EQ(Filtered(kind, by_socket), EAFNOSUPPORT);
    // A pair of datagram sockets sends anywhere, so socketpair(2) is no harmless exception.
    EXPECT_EQ(Plain(by_pair(SOCK_DGRAM)), 0);
    EXPECT_EQ(Filtered(kind, by_pair(SOCK_DGRAM)), EPERM);
    EXPECT_EQ(Filtered(kind, by_pair(SOCK_STREAM)), EISCONN);
  }
  char byte = 0;
  int arrived = 0;
  while (recv(host, &byte, 1, MSG_DONTWAIT) == 1) ++arrived;
  EXPECT_EQ(arrived, 4);  // The controls, and nothing else.
  close(host);
}

TEST(FilterInKernel, WithoutNamespacesNoMetadataChangesByPath) {
  const FakeTree scratch;
  const std::string file = scratch.At("/file");
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_GE(fd, 0);
  const char* path = file.c_str();
  const std::function<long()> by_path[] = {
      [=] { return chmod(path, 0600); },
      [=] { return fchmodat(AT_FDCWD, path, 0600, 0); },
      [=] { return chown(path, geteuid(), getegid()); },
      [=] { return fchownat(fd, "", geteuid(), getegid(), AT_EMPTY_PATH); },
      [=] { return utimensat(AT_FDCWD, path, nullptr, 0); },
  };
  for (const auto& change : by_path) {
    EXPECT_EQ(Plain(change), 0);
    EXPECT_EQ(Filtered(FilterKind::kFilteredOnline, change), EPERM);
    EXPECT_EQ(Filtered(FilterKind::kPrivate, change), 0);
  }
  EXPECT_EQ(Filtered(FilterKind::kFilteredOnline, [=] { return fchmod(fd, 0600); }), 0);
  EXPECT_EQ(Filtered(FilterKind::kFilteredOnline, [=] { return futimens(fd, nullptr); }), 0);
  close(fd);
}

TEST(FilterInKernel, WithoutNamespacesLimitsOfOthersAreOutOfReach) {
  const auto limits_of = [](pid_t pid) {
    return [=] {
      rlimit limit{};
      return prlimit(pid, RLIMIT_NOFILE, nullptr, &limit);
    };
  };
  const pid_t other = getpid();  // The test itself, seen from the forked process.
  EXPECT_EQ(Plain(limits_of(other)), 0);
  EXPECT_EQ(Filtered(FilterKind::kFilteredOffline, limits_of(other)), EPERM);
  EXPECT_EQ(Filtered(FilterKind::kFilteredOffline, limits_of(0)), 0);
}

}  // namespace
}  // namespace palmshed::backends::native
