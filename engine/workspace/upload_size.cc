#include "workspace/upload_size.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "workspace/disk_account.h"
#include "workspace/disk_usage.h"

namespace palmshed::workspace {
namespace {

constexpr std::uint64_t kStatBlock = 512;
constexpr int kMaxDepth = 100;  // As deep as an upload goes.

constexpr int kSourceFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
constexpr int kTargetFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW;

/// Bytes of data, holes left out.
std::uint64_t DataIn(BorrowedFd file, std::uint64_t size) {
  std::uint64_t sum = 0;
  for (std::uint64_t at = 0; at < size;) {
    const auto begin = sys::Seek(file, at, SEEK_DATA);
    if (!begin || *begin >= size) break;
    const auto end = sys::Seek(file, *begin, SEEK_HOLE);
    at = end && *end > *begin ? std::min(*end, size) : size;
    sum += RoomFor(at - *begin).bytes;
  }
  return sum;
}

class TreeSize {
 public:
  void Add(BorrowedFd source, BorrowedFd target, int depth) {
    auto again = sys::OpenAt(source, ".", O_RDONLY | O_DIRECTORY);
    if (!again) return;
    auto directory = sys::Directory::Read(std::move(*again));
    while (directory) {
      const auto entry = directory->Next();
      if (!entry || !*entry) return;
      AddEntry(directory->fd(), (*entry)->name, target, depth);
    }
  }

  const DiskChange& change() const { return change_; }

 private:
  void AddEntry(BorrowedFd source, const std::string& name, BorrowedFd target, int depth) {
    const auto st = sys::FstatAt(source, name, AT_SYMLINK_NOFOLLOW);
    if (!st) return;
    if (S_ISDIR(st->st_mode)) return AddDirectory(source, name, target, depth);
    change_.more += S_ISREG(st->st_mode) ? RoomOfFile(source, name, *st) : RoomFor(1);
    if (target < 0) return;
    const auto there = sys::FstatAt(target, name, AT_SYMLINK_NOFOLLOW);
    if (there) change_.less += RoomOf(*there);
  }

  void AddDirectory(BorrowedFd source, const std::string& name, BorrowedFd target, int depth) {
    if (depth == kMaxDepth) return;
    const auto fd = sys::OpenAt(source, name, kSourceFlags | O_DIRECTORY);
    if (!fd) return;
    auto into = target < 0 ? Result<UniqueFd>(UniqueFd()) : sys::OpenAt(target, name, kTargetFlags);
    if (!into) into = UniqueFd();
    if (!into->valid()) change_.more += RoomFor(1);
    Add(fd->get(), into->get(), depth + 1);
  }

  /// Only a file with holes has to be opened.
  static DiskAmount RoomOfFile(BorrowedFd source, const std::string& name, const struct stat& st) {
    const auto size = static_cast<std::uint64_t>(st.st_size);
    if (static_cast<std::uint64_t>(st.st_blocks) * kStatBlock >= size) return RoomFor(size);
    const auto fd = sys::OpenAt(source, name, kSourceFlags);
    return fd ? RoomForCopy(fd->get(), st) : RoomFor(size);
  }

  DiskChange change_{};
};

}  // namespace

DiskAmount RoomOf(const struct stat& replaced) {
  if (!S_ISREG(replaced.st_mode) || replaced.st_nlink != 1) return {};
  return {.bytes = static_cast<std::uint64_t>(replaced.st_blocks) * kStatBlock, .inodes = 1};
}

DiskAmount RoomForCopy(BorrowedFd file, const struct stat& st) {
  const auto size = static_cast<std::uint64_t>(st.st_size);
  if (static_cast<std::uint64_t>(st.st_blocks) * kStatBlock >= size) return RoomFor(size);
  return {.bytes = DataIn(file, size), .inodes = 1};
}

DiskChange ChangeByTree(BorrowedFd source, BorrowedFd target) {
  TreeSize size;
  size.Add(source, target, 0);
  return size.change();
}

}  // namespace palmshed::workspace
