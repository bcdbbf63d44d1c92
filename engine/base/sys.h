// System calls, one wrapper each, named like the call. Failures come back as an Error that names
// the call; EINTR is handled here; every descriptor is close-on-exec from birth.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::sys {

/// Two ends of a pipe(2) or socketpair(2).
struct FdPair {
  UniqueFd first;   ///< Read end of a pipe.
  UniqueFd second;  ///< Write end of a pipe.
};

/// One message of a SOCK_SEQPACKET socket with the descriptors that came along.
struct Message {
  std::size_t size = 0;  ///< Bytes received; 0 when the peer has closed.
  std::vector<UniqueFd> fds{};
};

Result<FdPair> Pipe(int flags = 0);
Result<void> SetNonBlocking(BorrowedFd fd);
Result<FdPair> SocketPair();                ///< AF_UNIX, SOCK_SEQPACKET.
Result<UniqueFd> Duplicate(BorrowedFd fd);  ///< fcntl(2), F_DUPFD_CLOEXEC.
Result<UniqueFd> Open(const std::string& path, int flags, mode_t mode = 0);
Result<UniqueFd> OpenAt(BorrowedFd dir, const std::string& name, int flags, mode_t mode = 0);
/// openat2(2) with RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS; EAGAIN (a racing rename) is retried.
Result<UniqueFd> OpenBeneath(BorrowedFd dir, const std::string& path, int flags, mode_t mode = 0);
/// openat2(2) of an absolute path with RESOLVE_NO_SYMLINKS: ELOOP where a part of it is a link.
Result<UniqueFd> OpenWithoutLinks(const std::string& path, int flags);
Result<void> MkdirAt(BorrowedFd dir, const std::string& name, mode_t mode);
Result<void> RenameAt(BorrowedFd from_dir, const std::string& from, BorrowedFd to_dir,
                      const std::string& to);
Result<void> UnlinkAt(BorrowedFd dir, const std::string& name, int flags = 0);
Result<void> Fchown(BorrowedFd fd, uid_t uid, gid_t gid);
Result<void> Fchmod(BorrowedFd fd, mode_t mode);
Result<struct stat> Fstat(BorrowedFd fd);
Result<struct stat> FstatAt(BorrowedFd dir, const std::string& name, int flags);
/// read(2); 0 at end of file. EAGAIN comes back as an Error with that errno.
Result<std::size_t> Read(BorrowedFd fd, std::span<std::byte> into);
/// pread(2): the file's own position stays.
Result<std::size_t> Pread(BorrowedFd fd, std::span<std::byte> into, std::int64_t offset);
Result<std::size_t> Write(BorrowedFd fd, std::span<const std::byte> bytes);
Result<void> WriteAll(BorrowedFd fd, std::span<const std::byte> bytes);
/// The whole content of a small file such as those of /proc.
Result<std::string> ReadFile(const std::string& path);
/// Sends one message with up to 8 descriptors (borrowed); never raises SIGPIPE.
Result<void> SendMessage(BorrowedFd socket, std::span<const std::byte> bytes,
                         std::span<const BorrowedFd> fds = {});
/// Receives one message; `flags` such as MSG_DONTWAIT.
Result<Message> ReceiveMessage(BorrowedFd socket, std::span<std::byte> into, int flags = 0);
Result<UniqueFd> PidfdOpen(pid_t pid);
/// The number of the process behind a pidfd, in this process's pid namespace; ESRCH when it is gone
/// or has none there.
Result<pid_t> PidOf(BorrowedFd pidfd);
Result<void> PidfdSendSignal(BorrowedFd pidfd, int signal);
/// Waits for a child to end and takes it out of the process table, if nobody else has.
void Reap(BorrowedFd pidfd);
/// A memfd without seals yet; `executable` asks for MFD_EXEC where the kernel knows it.
Result<UniqueFd> MemfdCreate(const char* name, bool executable);
Result<UniqueFd> Eventfd();
/// Waits until `fd` is readable or `timeout_ms` has passed (-1: for ever); true when readable.
Result<bool> WaitReadable(BorrowedFd fd, int timeout_ms);
/// As WaitReadable, for a change of a file of the kernel (POLLPRI) since it was last read.
Result<bool> WaitChanged(BorrowedFd fd, int timeout_ms);
/// As WaitReadable, for the moment when nobody holds the other end of `socket` any more.
Result<bool> WaitHangup(BorrowedFd socket, int timeout_ms);

}  // namespace palmshed::sys
