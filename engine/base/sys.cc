#include "base/sys.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <span>
#include <string>
#include <string_view>

#include "base/faults.h"
#include "base/kernel_call.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::sys {
namespace {

// Newer than the uapi headers of Debian 12 (memfd_create(2), Linux 6.3).
constexpr unsigned kMfdExec = 0x10;

constexpr std::size_t kMaxFds = 128;

template <class Call>
Result<UniqueFd> MakeFd(std::string_view op, std::string_view context, Call call) {
  const int fd = NoEintr(call);
  if (fd < 0) return std::unexpected(SysError(op, errno, context));
  return UniqueFd(fd);
}

}  // namespace

Result<FdPair> Pipe(int flags) {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC | flags) < 0) return std::unexpected(SysError("pipe2", errno));
  return FdPair{.first = UniqueFd(fds[0]), .second = UniqueFd(fds[1])};
}

Result<void> SetNonBlocking(BorrowedFd fd) {
  return Do("fcntl", {}, [&] { return ::fcntl(fd, F_SETFL, O_NONBLOCK); });
}

Result<FdPair> SocketPair() {
  std::array<int, 2> fds{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data()) < 0) {
    return std::unexpected(SysError("socketpair", errno));
  }
  return FdPair{.first = UniqueFd(fds[0]), .second = UniqueFd(fds[1])};
}

Result<UniqueFd> Duplicate(BorrowedFd fd) {
  return MakeFd("fcntl", {}, [&] { return ::fcntl(fd, F_DUPFD_CLOEXEC, 0); });
}

Result<UniqueFd> Open(const std::string& path, int flags, mode_t mode) {
  return OpenAt(AT_FDCWD, path, flags, mode);
}

Result<UniqueFd> OpenAt(BorrowedFd dir, const std::string& name, int flags, mode_t mode) {
  return MakeFd("openat", name,
                [&] { return ::openat(dir, name.c_str(), flags | O_CLOEXEC, mode); });
}

Result<UniqueFd> OpenBeneath(BorrowedFd dir, const std::string& path, int flags, mode_t mode) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
  how.mode = mode;
  how.resolve = Faulty("follow-links") ? 0 : RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  // EAGAIN: something was renamed while `..` was resolved (openat2(2)); a hostile renamer must not
  // hold the caller for ever.
  for (int attempt = 0; attempt < 64; ++attempt) {
    const long fd =
        NoEintr([&] { return ::syscall(SYS_openat2, dir, path.c_str(), &how, sizeof how); });
    if (fd >= 0) return UniqueFd(static_cast<int>(fd));
    if (errno != EAGAIN) break;
  }
  return std::unexpected(SysError("openat2", errno, path));
}

Result<UniqueFd> OpenWithoutLinks(const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const long fd =
      NoEintr([&] { return ::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how); });
  if (fd < 0) return std::unexpected(SysError("openat2", errno, path));
  return UniqueFd(static_cast<int>(fd));
}

Result<void> MkdirAt(BorrowedFd dir, const std::string& name, mode_t mode) {
  return Do("mkdirat", name, [&] { return ::mkdirat(dir, name.c_str(), mode); });
}

Result<void> RenameAt(BorrowedFd from_dir, const std::string& from, BorrowedFd to_dir,
                      const std::string& to) {
  return Do("renameat", from,
            [&] { return ::renameat(from_dir, from.c_str(), to_dir, to.c_str()); });
}

Result<void> UnlinkAt(BorrowedFd dir, const std::string& name, int flags) {
  return Do("unlinkat", name, [&] { return ::unlinkat(dir, name.c_str(), flags); });
}

Result<void> Fchown(BorrowedFd fd, uid_t uid, gid_t gid) {
  return Do("fchown", {}, [&] { return ::fchown(fd, uid, gid); });
}

Result<void> Fchmod(BorrowedFd fd, mode_t mode) {
  return Do("fchmod", {}, [&] { return ::fchmod(fd, mode); });
}

Result<struct stat> Fstat(BorrowedFd fd) {
  struct stat st{};
  PALMSHED_TRY_VOID(Do("fstat", {}, [&] { return ::fstat(fd, &st); }));
  return st;
}

Result<struct stat> FstatAt(BorrowedFd dir, const std::string& name, int flags) {
  struct stat st{};
  PALMSHED_TRY_VOID(Do("fstatat", name, [&] { return ::fstatat(dir, name.c_str(), &st, flags); }));
  return st;
}

Result<std::size_t> Read(BorrowedFd fd, std::span<std::byte> into) {
  const ssize_t n = NoEintr([&] { return ::read(fd, into.data(), into.size()); });
  if (n < 0) return std::unexpected(SysError("read", errno));
  return static_cast<std::size_t>(n);
}

Result<std::size_t> Pread(BorrowedFd fd, std::span<std::byte> into, std::int64_t offset) {
  const ssize_t n = NoEintr([&] { return ::pread(fd, into.data(), into.size(), offset); });
  if (n < 0) return std::unexpected(SysError("pread", errno));
  return static_cast<std::size_t>(n);
}

Result<std::size_t> Write(BorrowedFd fd, std::span<const std::byte> bytes) {
  const ssize_t n = NoEintr([&] { return ::write(fd, bytes.data(), bytes.size()); });
  if (n < 0) return std::unexpected(SysError("write", errno));
  return static_cast<std::size_t>(n);
}

Result<void> WriteAll(BorrowedFd fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    PALMSHED_TRY(const std::size_t n, Write(fd, bytes));
    bytes = bytes.subspan(n);
  }
  return {};
}

Result<std::string> ReadFile(const std::string& path) {
  PALMSHED_TRY(const UniqueFd fd, Open(path, O_RDONLY));
  std::string content;
  std::array<std::byte, 4096> chunk{};
  while (true) {
    PALMSHED_TRY(const std::size_t n, Read(fd.get(), chunk));
    if (n == 0) return content;
    content.append(reinterpret_cast<const char*>(chunk.data()), n);
  }
}

Result<void> SendMessage(BorrowedFd socket, std::span<const std::byte> bytes,
                         std::span<const BorrowedFd> fds) {
  PALMSHED_CHECK(fds.size() <= kMaxFds);
  iovec data{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMaxFds * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  return Do("sendmsg", {}, [&] { return ::sendmsg(socket, &message, MSG_NOSIGNAL); });
}

Result<Message> ReceiveMessage(BorrowedFd socket, std::span<std::byte> into, int flags) {
  iovec data{.iov_base = into.data(), .iov_len = into.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMaxFds * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t n = NoEintr([&] { return ::recvmsg(socket, &header, flags | MSG_CMSG_CLOEXEC); });
  if (n < 0) return std::unexpected(SysError("recvmsg", errno));
  Message message{.size = static_cast<std::size_t>(n)};
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
      message.fds.emplace_back(fd);
    }
  }
  return message;
}

Result<UniqueFd> PidfdOpen(pid_t pid) {
  return MakeFd("pidfd_open", {},
                [&] { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); });
}

Result<pid_t> PidOf(BorrowedFd pidfd) {
  PALMSHED_TRY(const std::string info, ReadFile("/proc/self/fdinfo/" + std::to_string(pidfd)));
  constexpr std::string_view kField = "\nPid:\t";
  const std::size_t at = info.find(kField);
  pid_t pid = -1;
  if (at != info.npos) {
    const char* const begin = info.data() + at + kField.size();
    (void)std::from_chars(begin, info.data() + info.size(), pid);
  }
  if (pid <= 0) return std::unexpected(SysError("pidfd", ESRCH));
  return pid;
}

Result<void> PidfdSendSignal(BorrowedFd pidfd, int signal) {
  return Do("pidfd_send_signal", {},
            [&] { return ::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0); });
}

void Reap(BorrowedFd pidfd) {
  siginfo_t info{};
  const auto child = static_cast<id_t>(pidfd);
  // ECHILD when the host program has reaped it, or ignores SIGCHLD.
  // NOLINTNEXTLINE(misc-include-cleaner): the options are in <sys/wait.h>.
  (void)NoEintr([&] { return ::waitid(P_PIDFD, child, &info, WEXITED | __WALL); });
}

Result<UniqueFd> MemfdCreate(const char* name, bool executable) {
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  if (executable) {
    const int fd = ::memfd_create(name, flags | kMfdExec);
    if (fd >= 0) return UniqueFd(fd);
    if (errno != EINVAL) return std::unexpected(SysError("memfd_create", errno));
  }
  return MakeFd("memfd_create", {}, [&] { return ::memfd_create(name, flags); });
}

Result<UniqueFd> Eventfd() {
  return MakeFd("eventfd", {}, [] { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
}

Result<bool> WaitReadable(BorrowedFd fd, int timeout_ms) {
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  const int n = NoEintr([&] { return ::poll(&entry, 1, timeout_ms); });
  if (n < 0) return std::unexpected(SysError("poll", errno));
  return n > 0;
}

Result<bool> WaitChanged(BorrowedFd fd, int timeout_ms) {
  pollfd entry{.fd = fd, .events = POLLPRI, .revents = 0};
  const int n = NoEintr([&] { return ::poll(&entry, 1, timeout_ms); });
  if (n < 0) return std::unexpected(SysError("poll", errno));
  return n > 0;
}

Result<bool> WaitHangup(BorrowedFd socket, int timeout_ms) {
  pollfd entry{.fd = socket, .events = 0, .revents = 0};  // POLLHUP comes unasked.
  const int n = NoEintr([&] { return ::poll(&entry, 1, timeout_ms); });
  if (n < 0) return std::unexpected(SysError("poll", errno));
  return n > 0;
}

}  // namespace palmshed::sys
