#include "workspace/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <expected>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "workspace/resolve.h"

namespace palmshed::workspace {
namespace {

constexpr std::size_t kChunk = 256U << 10;
constexpr std::uint64_t kMostPerCall = 1U << 30;
// Files of /proc and /sys say that they are empty and are not; none is larger than this.
constexpr std::uint64_t kMostOfUnknownSize = 64U << 20;

/// One stretch of data of a file.
struct Extent {
  std::uint64_t begin;
  std::uint64_t end;
};

/// The first stretch of data at or after `from`; empty at `size` when only a hole is left.
Result<Extent> NextData(BorrowedFd fd, std::uint64_t from, std::uint64_t size) {
  auto begin = sys::Seek(fd, from, SEEK_DATA);
  if (!begin && begin.error().sys_errno == ENXIO) return Extent{.begin = size, .end = size};
  // A file system that keeps no holes may say EINVAL: all of it is data.
  if (!begin) return Extent{.begin = from, .end = size};
  PALMSHED_TRY(const std::uint64_t end, sys::Seek(fd, *begin, SEEK_HOLE));
  return Extent{.begin = std::min(*begin, size), .end = std::min(end, size)};
}

/// Copies through memory; stops early at the end of the source.
Result<void> CopyByHand(BorrowedFd from, BorrowedFd to, Extent extent) {
  PALMSHED_TRY_VOID(sys::Seek(from, extent.begin, SEEK_SET));
  PALMSHED_TRY_VOID(sys::Seek(to, extent.begin, SEEK_SET));
  std::vector<std::byte> chunk(kChunk);
  while (extent.begin < extent.end) {
    const std::size_t want = std::min<std::uint64_t>(chunk.size(), extent.end - extent.begin);
    PALMSHED_TRY(const std::size_t n, sys::Read(from, std::span(chunk).first(want)));
    if (n == 0) break;
    PALMSHED_TRY_VOID(sys::WriteAll(to, std::span(chunk).first(n)));
    extent.begin += n;
  }
  return {};
}

/// True when copy_file_range(2) cannot do it here although read and write can.
bool NeedsCopyByHand(int sys_errno) {
  return sys_errno == EXDEV || sys_errno == EINVAL || sys_errno == ENOSYS ||
         sys_errno == EOPNOTSUPP || sys_errno == EPERM;
}

Result<void> CopyExtent(BorrowedFd from, BorrowedFd to, Extent extent) {
  while (extent.begin < extent.end) {
    const std::size_t want = std::min(kMostPerCall, extent.end - extent.begin);
    auto copied = sys::CopyFileRange(from, to, extent.begin, want);
    if (!copied && !NeedsCopyByHand(copied.error().sys_errno)) {
      return std::unexpected(std::move(copied.error()));
    }
    // Nothing copied: the source has shrunk, or belongs to a file system that only read() knows.
    if (!copied || *copied == 0) return CopyByHand(from, to, extent);
    extent.begin += *copied;
  }
  return {};
}

}  // namespace

Result<NewFile> NewFile::Create(BorrowedFd dir, const Owner& owner) {
  PALMSHED_TRY(std::string name, TemporaryName());
  PALMSHED_TRY(UniqueFd fd, sys::OpenAt(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  NewFile file(dir, std::move(name), std::move(fd));
  if (owner) PALMSHED_TRY_VOID(sys::Fchown(file.fd(), *owner, *owner));
  return file;
}

NewFile::NewFile(BorrowedFd dir, std::string temporary, UniqueFd fd)
    : dir_(dir), temporary_(std::move(temporary)), fd_(std::move(fd)) {}

NewFile::NewFile(NewFile&& other) noexcept
    : dir_(other.dir_),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::move(other.fd_)) {}

NewFile::~NewFile() {
  // Ignoring a failure, because only the name of an unfinished file is left behind.
  if (!temporary_.empty()) (void)sys::UnlinkAt(dir_, temporary_);
}

Result<void> NewFile::Publish(const std::string& name, mode_t mode) {
  PALMSHED_TRY_VOID(sys::Fchmod(fd_.get(), mode));
  fd_.reset();
  PALMSHED_TRY_VOID(sys::RenameAt(dir_, temporary_, dir_, name));
  temporary_.clear();
  return {};
}

Result<void> CopyContent(BorrowedFd from, BorrowedFd to) {
  PALMSHED_TRY(const struct stat st, sys::Fstat(from));
  const auto size = static_cast<std::uint64_t>(st.st_size);
  if (size == 0) return CopyByHand(from, to, {.begin = 0, .end = kMostOfUnknownSize});
  for (std::uint64_t at = 0; at < size;) {
    PALMSHED_TRY(const Extent extent, NextData(from, at, size));
    PALMSHED_TRY_VOID(CopyExtent(from, to, extent));
    at = extent.end;
  }
  return sys::Ftruncate(to, size);
}

}  // namespace palmshed::workspace
