#include "workspace/workspace.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/files.h"
#include "palmshed/units.h"
#include "workspace/disk_account.h"
#include "workspace/disk_usage.h"
#include "workspace/new_file.h"
#include "workspace/path.h"
#include "workspace/remove_tree.h"
#include "workspace/resolve.h"
#include "workspace/upload_size.h"

namespace palmshed::workspace {
namespace {

constexpr std::uint32_t kPermissionBits = 0777;
constexpr mode_t kDirectoryMode = 0755;
// The program may be filling the tree meanwhile; who deletes a larger one calls again.
constexpr std::chrono::minutes kRemovalLimit(1);
constexpr std::size_t kReadChunk = 64U << 10;

FileType TypeOf(mode_t mode) {
  if (S_ISREG(mode)) return FileType::kFile;
  if (S_ISDIR(mode)) return FileType::kDirectory;
  if (S_ISLNK(mode)) return FileType::kSymlink;
  return FileType::kOther;
}

FileStat ToFileStat(const struct stat& st) {
  using std::chrono::system_clock;
  const auto since_epoch =
      std::chrono::seconds(st.st_mtim.tv_sec) + std::chrono::nanoseconds(st.st_mtim.tv_nsec);
  return FileStat{.type = TypeOf(st.st_mode),
                  .size = Bytes{static_cast<std::uint64_t>(st.st_size)},
                  .mode = st.st_mode & 07777U,
                  .modified = system_clock::time_point(
                      std::chrono::duration_cast<system_clock::duration>(since_epoch))};
}

/// A system call's failure as the file API reports it.
template <class T>
Result<T> Report(Result<T> result, const SandboxPath& path) {
  if (!result) return std::unexpected(FileError(result.error(), path));
  return result;
}

Result<std::string> ReadAll(BorrowedFd fd, const SandboxPath& path) {
  PALMSHED_TRY(const struct stat st, Report(sys::Fstat(fd), path));
  const auto too_large = [](std::uint64_t size) { return size > Count(kMaxReadFile); };
  std::string content;
  const auto expected = static_cast<std::uint64_t>(st.st_size);
  if (!too_large(expected)) content.resize(expected + 1);  // One more, to see the end at once.
  std::size_t size = 0;
  while (!too_large(expected) && !too_large(size)) {
    if (size == content.size()) content.resize(size + kReadChunk);
    PALMSHED_TRY(
        const std::size_t n,
        Report(sys::Read(fd, std::as_writable_bytes(std::span(content)).subspan(size)), path));
    size += n;
    if (n != 0) continue;
    content.resize(size);
    return content;
  }
  return std::unexpected(FileError(path, "is larger than 1 GiB: download it instead"));
}

Result<std::vector<DirEntry>> ReadEntries(UniqueFd fd) {
  PALMSHED_TRY(sys::Directory directory, sys::Directory::Read(std::move(fd)));
  std::vector<DirEntry> entries;
  while (entries.size() <= kMaxListed) {
    PALMSHED_TRY(auto entry, directory.Next());
    if (!entry) break;
    auto st = sys::FstatAt(directory.fd(), entry->name, AT_SYMLINK_NOFOLLOW);
    if (!st && st.error().sys_errno == ENOENT) continue;  // Gone since its name was read.
    if (!st) return std::unexpected(std::move(st.error()));
    entries.push_back({.name = std::move(entry->name), .stat = ToFileStat(*st)});
  }
  return entries;
}

Result<void> RemoveAt(BorrowedFd root, std::string_view path, bool recursive) {
  PALMSHED_TRY(const SandboxPath where, SandboxPath::Parse(path));
  PALMSHED_TRY(const Leaf leaf, OpenLeaf(root, where));
  const BorrowedFd parent = leaf.parent.get();
  PALMSHED_TRY(const struct stat st,
               Report(sys::FstatAt(parent, leaf.name, AT_SYMLINK_NOFOLLOW), where));
  if (S_ISDIR(st.st_mode)) {
    return Report(recursive ? RemoveTree(parent, leaf.name, kRemovalLimit)
                            : sys::UnlinkAt(parent, leaf.name, AT_REMOVEDIR),
                  where);
  }
  if (where.directory_only()) return std::unexpected(FileError(where, "is not a directory"));
  return Report(sys::UnlinkAt(parent, leaf.name), where);
}

/// What a file that is written to `path` takes the place of.
DiskAmount Replaced(BorrowedFd root, const SandboxPath& path) {
  const auto there = OpenInside(root, path, O_PATH);
  if (!there) return {};
  const auto st = sys::Fstat(there->get());
  return st ? RoomOf(*st) : DiskAmount{};
}

}  // namespace

Result<void> CheckMode(std::uint32_t mode) {
  if ((mode & ~kPermissionBits) == 0) return {};
  return std::unexpected(InvalidOption(
      "mode", "must consist of permission bits (0777): setuid, setgid and sticky are refused"));
}

Result<UniqueFd> OpenRegular(BorrowedFd root, const SandboxPath& path) {
  // Opening a FIFO lets a program go on that waits at its other end, and some devices act when
  // opened, so the kind is looked at before. O_NONBLOCK is for a file that becomes one in between,
  // and for a lease (fcntl(2), F_SETLEASE), which would make the open wait for 45 seconds.
  PALMSHED_TRY(const UniqueFd look, OpenInside(root, path, O_PATH));
  PALMSHED_TRY(struct stat st, Report(sys::Fstat(look.get()), path));
  if (S_ISDIR(st.st_mode)) return std::unexpected(FileError(path, "is a directory"));
  if (!S_ISREG(st.st_mode)) return std::unexpected(FileError(path, "is not a regular file"));
  PALMSHED_TRY(UniqueFd fd, OpenInside(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  PALMSHED_TRY(st, Report(sys::Fstat(fd.get()), path));
  if (!S_ISREG(st.st_mode)) return std::unexpected(FileError(path, "is not a regular file"));
  return fd;
}

Result<void> CheckReplaceable(const Leaf& leaf, const SandboxPath& path) {
  auto st = sys::FstatAt(leaf.parent.get(), leaf.name, AT_SYMLINK_NOFOLLOW);
  if (!st) return {};  // Nothing there; whatever else is wrong shows when it is written.
  if (S_ISDIR(st->st_mode)) return std::unexpected(FileError(path, "is a directory"));
  if (TypeOf(st->st_mode) != FileType::kOther) return {};
  return std::unexpected(FileError(path, "is not a regular file"));
}

Workspace::Workspace(UniqueFd root, Owner owner, std::shared_ptr<DiskAccount> account)
    : root_(std::move(root)), owner_(owner), account_(std::move(account)) {}

Result<std::string> Workspace::ReadFile(std::string_view path) const {
  PALMSHED_TRY(const SandboxPath where, SandboxPath::Parse(path));
  PALMSHED_TRY(const UniqueFd fd, OpenRegular(root_.get(), where));
  return ReadAll(fd.get(), where);
}

Result<void> Workspace::WriteFile(std::string_view path, std::span<const std::byte> content,
                                  std::uint32_t mode) const {
  PALMSHED_TRY_VOID(CheckMode(mode));
  PALMSHED_TRY(const SandboxPath where, SandboxPath::Parse(path));
  const DiskChange change{.more = RoomFor(content.size()), .less = Replaced(root_.get(), where)};
  return InQuota(change, [&]() -> Result<void> {
    PALMSHED_TRY(const Leaf leaf, OpenLeafToWrite(root_.get(), owner_, where));
    PALMSHED_TRY_VOID(CheckReplaceable(leaf, where));
    PALMSHED_TRY(NewFile file, Report(NewFile::Create(leaf.parent.get(), owner_), where));
    PALMSHED_TRY_VOID(Report(sys::WriteAll(file.fd(), content), where));
    return Report(file.Publish(leaf.name, mode), where);
  });
}

Result<std::vector<DirEntry>> Workspace::List(std::string_view path) const {
  PALMSHED_TRY(const SandboxPath where, SandboxPath::Parse(path));
  PALMSHED_TRY(UniqueFd fd, OpenInside(root_.get(), where, O_RDONLY | O_DIRECTORY | O_NONBLOCK));
  PALMSHED_TRY(auto entries, Report(ReadEntries(std::move(fd)), where));
  if (entries.size() > kMaxListed) {
    return std::unexpected(FileError(where, "has more than 100000 entries"));
  }
  // Names compare as unsigned bytes, std::string::compare.
  std::ranges::sort(entries, {}, &DirEntry::name);
  return entries;
}

Result<FileStat> Workspace::Stat(std::string_view path) const {
  PALMSHED_TRY(const SandboxPath where, SandboxPath::Parse(path));
  const bool by_name = !where.IsRoot() && where.name() != ".." && !where.directory_only();
  PALMSHED_TRY(const UniqueFd fd,
               OpenInside(root_.get(), where, by_name ? O_PATH | O_NOFOLLOW : O_PATH));
  PALMSHED_TRY(const struct stat st, Report(sys::Fstat(fd.get()), where));
  return ToFileStat(st);
}

Result<void> Workspace::MakeDirectory(std::string_view path, std::uint32_t mode) const {
  PALMSHED_TRY_VOID(CheckMode(mode));
  PALMSHED_TRY(const SandboxPath where, SandboxPath::Parse(path));
  if (account_ && OpenInside(root_.get(), where, O_PATH | O_DIRECTORY)) return {};
  return InQuota({.more = RoomFor(1)}, [&]() -> Result<void> {
    PALMSHED_TRY_VOID(OpenOrMakeDirectory(root_.get(), owner_, where, mode));
    return {};
  });
}

Result<void> Workspace::Remove(std::string_view path, bool recursive) const {
  auto removed = RemoveAt(root_.get(), path, recursive);
  // What failed may have removed a part of it.
  if (account_) account_->NoteRemoval();
  return removed;
}

Result<void> Workspace::Move(std::string_view from, std::string_view to) const {
  PALMSHED_TRY(const SandboxPath source, SandboxPath::Parse(from));
  PALMSHED_TRY(const SandboxPath target, SandboxPath::Parse(to));
  PALMSHED_TRY(const Leaf old_leaf, OpenLeaf(root_.get(), source));
  PALMSHED_TRY(const Leaf new_leaf, OpenLeaf(root_.get(), target));
  PALMSHED_TRY_VOID(
      Report(sys::FstatAt(old_leaf.parent.get(), old_leaf.name, AT_SYMLINK_NOFOLLOW), source));
  auto moved =
      sys::RenameAt(old_leaf.parent.get(), old_leaf.name, new_leaf.parent.get(), new_leaf.name);
  if (!moved && moved.error().sys_errno == EINVAL) {
    return std::unexpected(FileError(source, "cannot be moved into itself"));
  }
  return Report(std::move(moved), target);
}

Result<void> Workspace::Chmod(std::string_view path, std::uint32_t mode) const {
  PALMSHED_TRY_VOID(CheckMode(mode));
  PALMSHED_TRY(const SandboxPath where, SandboxPath::Parse(path));
  PALMSHED_TRY(const UniqueFd fd, OpenInside(root_.get(), where, O_PATH));
  PALMSHED_TRY(const struct stat st, Report(sys::Fstat(fd.get()), where));
  if (TypeOf(st.st_mode) == FileType::kOther) {
    return std::unexpected(FileError(where, "is neither a file nor a directory"));
  }
  return Report(sys::ChmodOpened(fd.get(), mode), where);
}

Result<UniqueFd> Workspace::OpenDirectoryMakingParents(std::string_view path) const {
  PALMSHED_TRY(const SandboxPath where, SandboxPath::Parse(path));
  return OpenOrMakeDirectory(root_.get(), owner_, where, kDirectoryMode);
}

}  // namespace palmshed::workspace
