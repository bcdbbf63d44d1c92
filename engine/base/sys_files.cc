#include "base/sys_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <expected>
#include <optional>
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

// Newer than the headers of Debian 12; the same number on every architecture (Linux 6.6).
constexpr long kFchmodat2 = 452;

/// Leads to the very file that is open, whatever its name has become.
std::string MagicLink(BorrowedFd fd) { return "/proc/self/fd/" + std::to_string(fd); }

}  // namespace

Result<std::string> ReadlinkAt(BorrowedFd dir, const std::string& name) {
  std::array<char, PATH_MAX> target{};
  const ssize_t n =
      NoEintr([&] { return ::readlinkat(dir, name.c_str(), target.data(), target.size()); });
  if (n < 0) return std::unexpected(SysError("readlinkat", errno, name));
  return std::string(target.data(), static_cast<std::size_t>(n));
}

Result<std::string> PathOf(BorrowedFd fd) { return ReadlinkAt(AT_FDCWD, MagicLink(fd)); }

Result<void> SymlinkAt(const std::string& target, BorrowedFd dir, const std::string& name) {
  return Do("symlinkat", name, [&] { return ::symlinkat(target.c_str(), dir, name.c_str()); });
}

Result<void> RenameNew(BorrowedFd from_dir, const std::string& from, BorrowedFd to_dir,
                       const std::string& to) {
  return Do("renameat2", to, [&] {
    return ::renameat2(from_dir, from.c_str(), to_dir, to.c_str(), RENAME_NOREPLACE);
  });
}

Result<UniqueFd> OpenBeneathNoLinks(BorrowedFd dir, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
  how.resolve =
      Faulty("follow-links") ? 0 : RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS;
  const long fd =
      NoEintr([&] { return ::syscall(SYS_openat2, dir, path.c_str(), &how, sizeof how); });
  if (fd < 0) return std::unexpected(SysError("openat2", errno, path));
  return UniqueFd(static_cast<int>(fd));
}

Result<void> LinkAt(BorrowedFd from_dir, const std::string& from, BorrowedFd to_dir,
                    const std::string& to) {
  return Do("linkat", from,
            [&] { return ::linkat(from_dir, from.c_str(), to_dir, to.c_str(), 0); });
}

Result<void> LchownAt(BorrowedFd dir, const std::string& name, uid_t uid, gid_t gid) {
  return Do("fchownat", name,
            [&] { return ::fchownat(dir, name.c_str(), uid, gid, AT_SYMLINK_NOFOLLOW); });
}

Result<void> ChmodAt(BorrowedFd dir, const std::string& name, mode_t mode) {
  return Do("fchmodat", name, [&] { return ::fchmodat(dir, name.c_str(), mode, 0); });
}

Result<void> ChmodOpened(BorrowedFd fd, mode_t mode) {
  const long done = NoEintr([&] { return ::syscall(kFchmodat2, fd, "", mode, AT_EMPTY_PATH); });
  if (done == 0) return {};
  // Before 6.6, or under a seccomp profile that does not know the call.
  if (errno != ENOSYS && errno != EPERM) return std::unexpected(SysError("fchmodat2", errno));
  const std::string self = MagicLink(fd);
  return Do("chmod", {}, [&] { return ::chmod(self.c_str(), mode); });
}

Result<void> Ftruncate(BorrowedFd fd, std::uint64_t size) {
  return Do("ftruncate", {}, [&] { return ::ftruncate(fd, static_cast<off_t>(size)); });
}

Result<std::uint64_t> FileSystemType(const std::string& path) {
  struct statfs file_system{};
  PALMSHED_TRY_VOID(Do("statfs", path, [&] { return ::statfs(path.c_str(), &file_system); }));
  return static_cast<std::uint64_t>(file_system.f_type);
}

Result<std::string> GetXattr(const std::string& path, const char* name) {
  std::array<char, 64> value{};
  const ssize_t n =
      NoEintr([&] { return ::getxattr(path.c_str(), name, value.data(), value.size()); });
  if (n < 0) return std::unexpected(SysError("getxattr", errno, path));
  return std::string(value.data(), static_cast<std::size_t>(n));
}

Result<void> SetModified(BorrowedFd fd, const timespec& modified) {
  const std::array<timespec, 2> times{timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, modified};
  return Do("futimens", {}, [&] { return ::futimens(fd, times.data()); });
}

Result<std::uint64_t> Seek(BorrowedFd fd, std::uint64_t offset, int whence) {
  const off_t at = ::lseek(fd, static_cast<off_t>(offset), whence);
  if (at < 0) return std::unexpected(SysError("lseek", errno));
  return static_cast<std::uint64_t>(at);
}

Result<std::size_t> CopyFileRange(BorrowedFd from, BorrowedFd to, std::uint64_t offset,
                                  std::size_t size) {
  const ssize_t n = NoEintr([&] {
    auto from_at = static_cast<off_t>(offset);
    auto to_at = static_cast<off_t>(offset);
    return ::copy_file_range(from, &from_at, to, &to_at, size, 0);
  });
  if (n < 0) return std::unexpected(SysError("copy_file_range", errno));
  return static_cast<std::size_t>(n);
}

Result<struct statx> StatxAt(BorrowedFd dir, const char* name) {
  constexpr int kFlags = AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
  struct statx st{};
  if (NoEintr([&] { return ::statx(dir, name, kFlags, STATX_BASIC_STATS | STATX_BTIME, &st); }) <
      0) {
    return std::unexpected(SysError("statx", errno, name));
  }
  return st;
}

Result<struct statvfs> Fstatvfs(BorrowedFd fd) {
  struct statvfs st{};
  PALMSHED_TRY_VOID(Do("fstatvfs", {}, [&] { return ::fstatvfs(fd, &st); }));
  return st;
}

Result<std::size_t> ReadEntries(BorrowedFd dir, std::span<std::byte> into) {
  const ssize_t n = NoEintr([&] { return ::getdents64(dir, into.data(), into.size()); });
  if (n < 0) return std::unexpected(SysError("getdents64", errno));
  return static_cast<std::size_t>(n);
}

Result<void> Flock(BorrowedFd fd, int operation) {
  return Do("flock", {}, [&] { return ::flock(fd, operation); });
}

Result<void> LockByte(BorrowedFd fd, std::uint64_t offset) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(offset);
  lock.l_len = 1;
  return Do("fcntl", "F_OFD_SETLK", [&] { return ::fcntl(fd, F_OFD_SETLK, &lock); });
}

Result<void> GetRandom(std::span<std::byte> into) {
  while (!into.empty()) {
    const ssize_t n = NoEintr([&] { return ::getrandom(into.data(), into.size(), 0); });
    if (n < 0) return std::unexpected(SysError("getrandom", errno));
    into = into.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Result<std::string> RandomHex(std::size_t digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<std::byte, 64> bytes{};
  PALMSHED_CHECK(digits <= bytes.size());
  PALMSHED_TRY_VOID(GetRandom(std::span(bytes).first(digits)));
  std::string hex;
  for (std::size_t i = 0; i < digits; ++i) hex += kDigits[std::to_integer<unsigned>(bytes[i]) & 15];
  return hex;
}

Result<Directory> Directory::Read(UniqueFd fd) {
  DIR* stream = ::fdopendir(fd.get());
  if (stream == nullptr) return std::unexpected(SysError("fdopendir", errno));
  (void)fd.release();  // The stream owns it now.
  return Directory(stream);
}

Result<std::optional<Directory::Entry>> Directory::Next() {
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(stream_.get());
    if (entry == nullptr && errno != 0) return std::unexpected(SysError("readdir", errno));
    if (entry == nullptr) return std::optional<Entry>();
    const std::string_view name(entry->d_name);
    if (name == "." || name == "..") continue;
    return Entry{.name = std::string(name), .type = entry->d_type, .inode = entry->d_ino};
  }
}

void Directory::Rewind() { ::rewinddir(stream_.get()); }

BorrowedFd Directory::fd() const { return ::dirfd(stream_.get()); }

}  // namespace palmshed::sys
