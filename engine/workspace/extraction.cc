#include "workspace/extraction.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "workspace/archive_budget.h"
#include "workspace/archive_error.h"
#include "workspace/archive_reader.h"
#include "workspace/disk_account.h"
#include "workspace/disk_usage.h"
#include "workspace/growing_room.h"
#include "workspace/new_file.h"
#include "workspace/new_link.h"
#include "workspace/path.h"
#include "workspace/resolve.h"
#include "workspace/upload_size.h"

namespace palmshed::workspace {
namespace {

constexpr std::uint32_t kPermissionBits = 0777;
constexpr std::uint32_t kParentMode = 0755;
/// Else what comes later in the archive could not be put into it.
constexpr std::uint32_t kOwnerMayUse = 0700;
constexpr int kDirectoryFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW;

std::string_view Meaning(int sys_errno) {
  switch (sys_errno) {
    case ELOOP:
      return "leads through a link";
    case ENOTDIR:
      return "needs a directory where there is something else";
    case EXDEV:
      return "leaves the directory that it is extracted into";
    case EISDIR:
      return "is a file where there is a directory";
    case EAGAIN:
    case ENOENT:
      return "was being moved by the program meanwhile";
    default:
      return {};
  }
}

/// A system call for an entry failed. What a quota says stays as it is.
Error OfEntry(const std::string& name, const Error& cause) {
  if (cause.sys_errno == 0) return cause;
  const std::string_view meaning = Meaning(cause.sys_errno);
  Error error = EntryError(
      name, meaning.empty() ? "cannot be extracted: " + cause.message : std::string(meaning));
  if (cause.code == ErrorCode::kOverloaded) error.code = cause.code;
  error.op = cause.op;
  error.sys_errno = cause.sys_errno;
  return error;
}

template <class T>
Result<T> Report(const std::string& name, Result<T> result) {
  if (!result) return std::unexpected(OfEntry(name, result.error()));
  return result;
}

/// `name`, of the entry itself or of one that it links to, as a path below the directory.
Result<SandboxPath> CheckName(const std::string& entry, const std::string& name) {
  if (name.empty()) return std::unexpected(EntryError(entry, "has no name"));
  if (name.starts_with('/')) return std::unexpected(EntryError(entry, "has an absolute path"));
  if (("/" + name + "/").contains("/../")) {
    return std::unexpected(EntryError(entry, "has a path with \"..\""));
  }
  auto path = SandboxPath::Parse(name);
  if (!path) return std::unexpected(EntryError(entry, "has a path that " + path.error().message));
  return path;
}

DiskAmount Replaced(const Leaf& leaf) {
  const auto st = sys::FstatAt(leaf.parent.get(), leaf.name, AT_SYMLINK_NOFOLLOW);
  return st ? RoomOf(*st) : DiskAmount{};
}

/// One file's content on its way to the disk.
class ContentCopy {
 public:
  ContentCopy(const ArchiveEntry& entry, BorrowedFd to, GrowingRoom& room, ArchiveBudget& budget)
      : entry_(entry), to_(to), room_(room), budget_(budget) {}

  Result<void> From(ArchiveReader& archive) {
    if (entry_.size) PALMSHED_TRY_VOID(budget_.AddBytes(*entry_.size));
    // All of it at once, so that what cannot fit is refused before any of it is written.
    PALMSHED_TRY_VOID(room_.Ensure(entry_.size && !entry_.has_holes ? *entry_.size : 0));
    while (true) {
      PALMSHED_TRY_VOID(budget_.CheckTime());
      PALMSHED_TRY(const auto piece, archive.NextPiece());
      if (!piece) break;
      PALMSHED_TRY_VOID(Add(*piece));
    }
    const std::uint64_t size = entry_.size.value_or(end_);
    return size == end_ ? Result<void>() : Report(entry_.name, sys::Ftruncate(to_, size));
  }

 private:
  Result<void> Add(const ArchiveReader::Piece& piece) {
    if (piece.bytes.empty()) return {};
    const std::uint64_t end = piece.offset + piece.bytes.size();
    if (piece.offset < end_ || (entry_.size && end > *entry_.size)) {
      return std::unexpected(EntryError(entry_.name, "holds other data than it says"));
    }
    if (!entry_.size) PALMSHED_TRY_VOID(budget_.AddBytes(end - end_));
    written_ += RoomFor(piece.bytes.size()).bytes;
    if (!entry_.size || entry_.has_holes) PALMSHED_TRY_VOID(room_.Ensure(written_));
    if (piece.offset != end_) {
      PALMSHED_TRY_VOID(Report(entry_.name, sys::Seek(to_, piece.offset, SEEK_SET)));
    }
    end_ = end;
    return Report(entry_.name, sys::WriteAll(to_, piece.bytes));
  }

  const ArchiveEntry& entry_;
  BorrowedFd to_;
  GrowingRoom& room_;
  ArchiveBudget& budget_;
  std::uint64_t end_ = 0;      ///< Of what has been written.
  std::uint64_t written_ = 0;  ///< In blocks.
};

}  // namespace

Result<void> Extraction::All(ArchiveReader& archive) {
  while (true) {
    PALMSHED_TRY_VOID(budget_.CheckTime());
    PALMSHED_TRY(const auto entry, archive.Next());
    if (!entry) return {};
    PALMSHED_TRY_VOID(budget_.AddEntry());
    PALMSHED_TRY_VOID(Add(archive, *entry));
  }
}

Result<void> Extraction::Add(ArchiveReader& archive, const ArchiveEntry& entry) {
  PALMSHED_TRY(const SandboxPath path, CheckName(entry.name, entry.name));
  if (entry.kind == EntryKind::kDirectory) {
    PALMSHED_TRY_VOID(
        OpenDirectory(entry.name, path.Text(), (entry.mode & kPermissionBits) | kOwnerMayUse));
    return {};
  }
  if (path.IsRoot()) return std::unexpected(EntryError(entry.name, "names no file"));
  if (entry.kind == EntryKind::kOther) {
    return std::unexpected(EntryError(entry.name, "is neither a file, a directory nor a link"));
  }
  const std::size_t depth = place_.depth + DepthOf(path.parent());
  if (entry.kind == EntryKind::kSymlink && !LinkStaysInside(depth, entry.target)) {
    return std::unexpected(EntryError(entry.name, "is a link that leaves the workspace"));
  }
  PALMSHED_TRY(const Leaf leaf, OpenLeafOf(entry.name, path));
  PALMSHED_TRY_VOID(CheckReplaceable(entry, leaf));
  if (entry.kind == EntryKind::kFile) return AddFile(archive, entry, leaf);
  PALMSHED_TRY_VOID(ReserveForName());
  if (entry.kind == EntryKind::kHardLink) return AddHardLink(entry, leaf);
  return Report(entry.name, PutSymlink(entry.target, leaf.parent.get(), leaf.name, place_.owner));
}

Result<void> Extraction::AddFile(ArchiveReader& archive, const ArchiveEntry& entry,
                                 const Leaf& leaf) {
  GrowingRoom room(place_.account, place_.workspace, Replaced(leaf));
  PALMSHED_TRY(NewFile file, Report(entry.name, NewFile::Create(leaf.parent.get(), place_.owner)));
  PALMSHED_TRY_VOID(ContentCopy(entry, file.fd(), room, budget_).From(archive));
  PALMSHED_TRY_VOID(Report(entry.name, sys::SetModified(file.fd(), entry.modified)));
  PALMSHED_TRY_VOID(Report(entry.name, file.Publish(leaf.name, entry.mode & kPermissionBits)));
  room.Done();
  return {};
}

Result<void> Extraction::AddHardLink(const ArchiveEntry& entry, const Leaf& leaf) const {
  PALMSHED_TRY(const SandboxPath target, CheckName(entry.name, entry.target));
  if (target.IsRoot()) return std::unexpected(EntryError(entry.name, "is a link to a directory"));
  auto parent = sys::OpenBeneathNoLinks(place_.into, target.parent(), O_PATH | O_DIRECTORY);
  auto linked = parent ? PutHardLink(parent->get(), target.name(), leaf.parent.get(), leaf.name)
                       : Result<void>(std::unexpected(parent.error()));
  if (linked) return {};
  const int why = linked.error().sys_errno;
  if (why != ENOENT && why != ELOOP && why != ENOTDIR && why != EPERM) {
    return Report(entry.name, std::move(linked));
  }
  return std::unexpected(EntryError(entry.name, "is a hard link to no file that was extracted"));
}

Result<void> Extraction::CheckReplaceable(const ArchiveEntry& entry, const Leaf& leaf) const {
  const auto st = sys::FstatAt(leaf.parent.get(), leaf.name, AT_SYMLINK_NOFOLLOW);
  if (!st) return {};  // Nothing there; whatever else is wrong shows when it is written.
  if (S_ISREG(st->st_mode) || S_ISLNK(st->st_mode)) return {};
  return std::unexpected(EntryError(entry.name, S_ISDIR(st->st_mode)
                                                    ? Meaning(EISDIR)
                                                    : "would replace something that is no file"));
}

Result<Leaf> Extraction::OpenLeafOf(const std::string& name, const SandboxPath& path) {
  PALMSHED_TRY(UniqueFd parent, OpenDirectory(name, path.parent(), kParentMode));
  return Leaf{.parent = std::move(parent), .name = path.name()};
}

Result<UniqueFd> Extraction::OpenDirectory(const std::string& name, const std::string& path,
                                           std::uint32_t mode) {
  auto there = sys::OpenBeneathNoLinks(place_.into, path, O_PATH | O_DIRECTORY);
  if (there || there.error().sys_errno != ENOENT) return Report(name, std::move(there));
  return Report(name, MakeDirectories(path, mode));
}

/// One level after another from the descriptor of the one above: a name alone leads nowhere else.
Result<UniqueFd> Extraction::MakeDirectories(const std::string& path, std::uint32_t mode) {
  PALMSHED_TRY(UniqueFd at, sys::OpenAt(place_.into, ".", kDirectoryFlags));
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string component = path.substr(begin, end - begin);
    auto next = sys::OpenAt(at.get(), component, kDirectoryFlags);
    if (!next && next.error().sys_errno == ENOENT) {
      PALMSHED_TRY_VOID(ReserveForName());
      const auto made = MakeOneDirectory(at.get(), component, place_.owner,
                                         end == path.size() ? mode : kParentMode);
      if (!made && made.error().sys_errno != EEXIST) return std::unexpected(made.error());
      next = sys::OpenAt(at.get(), component, kDirectoryFlags);
    }
    PALMSHED_TRY(at, std::move(next));
    begin = end + 1;
  }
  return at;
}

/// For a directory or a link: what is asked for and never given back is a block.
Result<void> Extraction::ReserveForName() const {
  GrowingRoom room(place_.account, place_.workspace, {});
  PALMSHED_TRY_VOID(room.Ensure(1));
  room.Done();
  return {};
}

}  // namespace palmshed::workspace
