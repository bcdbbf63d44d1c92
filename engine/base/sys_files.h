// System calls on files and directories beyond those of base/sys.h, under the same rules.
#pragma once

#include <dirent.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::sys {

Result<std::string> ReadlinkAt(BorrowedFd dir, const std::string& name);
/// The kernel's own path of what `fd` refers to: absolute, without links, "." and "..", however it
/// was spelled. What has been deleted is called " (deleted)" at the end.
Result<std::string> PathOf(BorrowedFd fd);
Result<void> SymlinkAt(const std::string& target, BorrowedFd dir, const std::string& name);
/// renameat2(2) with RENAME_NOREPLACE: EEXIST when `to` is there already.
Result<void> RenameNew(BorrowedFd from_dir, const std::string& from, BorrowedFd to_dir,
                       const std::string& to);
/// OpenBeneath that follows no link at all (RESOLVE_NO_SYMLINKS): ELOOP when one is on the way or
/// at the end, except at the end with O_PATH | O_NOFOLLOW.
Result<UniqueFd> OpenBeneathNoLinks(BorrowedFd dir, const std::string& path, int flags);
/// linkat(2); a link is not followed.
Result<void> LinkAt(BorrowedFd from_dir, const std::string& from, BorrowedFd to_dir,
                    const std::string& to);
/// Changes the owner of a name; a link's own, never its target's.
Result<void> LchownAt(BorrowedFd dir, const std::string& name, uid_t uid, gid_t gid);
/// fchmodat(2); follows a link.
Result<void> ChmodAt(BorrowedFd dir, const std::string& name, mode_t mode);
/// chmod of what `fd` refers to, O_PATH descriptors included (fchmod(2) refuses those).
Result<void> ChmodOpened(BorrowedFd fd, mode_t mode);
Result<void> Ftruncate(BorrowedFd fd, std::uint64_t size);
/// The magic number of the file system that `path` is on (statfs(2)).
Result<std::uint64_t> FileSystemType(const std::string& path);
/// A short extended attribute of `path`; ENODATA when it has none of that name.
Result<std::string> GetXattr(const std::string& path, const char* name);
/// Sets the time of the last modification.
Result<void> SetModified(BorrowedFd fd, const timespec& modified);
/// lseek(2), SEEK_DATA and SEEK_HOLE included.
Result<std::uint64_t> Seek(BorrowedFd fd, std::uint64_t offset, int whence);
/// copy_file_range(2) from and to the same offset; how many bytes were copied.
Result<std::size_t> CopyFileRange(BorrowedFd from, BorrowedFd to, std::uint64_t offset,
                                  std::size_t size);
/// statx(2) of a name, a link itself, with everything that struct stat has and the time of birth;
/// an empty name: of `dir` itself.
Result<struct statx> StatxAt(BorrowedFd dir, const char* name);
/// fstatvfs(3)
Result<struct statvfs> Fstatvfs(BorrowedFd fd);
/// getdents64(2): as many entries as fit, each a dirent64; how many bytes, 0 at the end. For
/// directories with more names than a Directory can be read of quickly.
Result<std::size_t> ReadEntries(BorrowedFd dir, std::span<std::byte> into);
/// flock(2). EWOULDBLOCK comes back as an Error with that errno.
Result<void> Flock(BorrowedFd fd, int operation);
/// Takes a write lock on one byte for the open file description (F_OFD_SETLK, fcntl(2)); EAGAIN
/// when another description holds it.
Result<void> LockByte(BorrowedFd fd, std::uint64_t offset);
/// Fills `into` from the kernel's random number generator.
Result<void> GetRandom(std::span<std::byte> into);
/// `digits` random lower-case hex digits; at most 64.
Result<std::string> RandomHex(std::size_t digits);

/// Reads the names in a directory, "." and ".." left out, in the order of the file system.
class Directory {
 public:
  struct Entry {
    std::string name;
    unsigned char type = 0;  ///< As of readdir(3); DT_UNKNOWN on some file systems.
    std::uint64_t inode = 0;
  };

  /// `fd` is open for reading, not an O_PATH descriptor.
  static Result<Directory> Read(UniqueFd fd);
  /// The next name; nullopt at the end.
  Result<std::optional<Entry>> Next();
  /// Starts again.
  void Rewind();
  BorrowedFd fd() const;

 private:
  struct Close {
    void operator()(DIR* stream) const { (void)::closedir(stream); }
  };
  explicit Directory(DIR* stream) : stream_(stream) {}
  std::unique_ptr<DIR, Close> stream_;
};

}  // namespace palmshed::sys
