#include "backends/native/state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/native/state_paths.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "kernel/cgroup.h"
#include "palmshed/error.h"
#include "workspace/remove_tree.h"
#include "workspace/resolve.h"

namespace palmshed::backends::native {
namespace {

constexpr std::string_view kPrefix = "sbx_";
constexpr std::size_t kDigits = 16;
constexpr std::string_view kLockSuffix = ".lock";
constexpr std::string_view kTrashSuffix = ".trash";
constexpr std::string_view kGroupsFile = "/groups";
constexpr std::size_t kMaxGroupsFile = 32768;  ///< A few paths of at most PATH_MAX.
constexpr int kMaxAttempts = 8;

std::string LockName(const std::string& id) { return id + std::string(kLockSuffix); }
std::string TrashName(const std::string& id) { return id + std::string(kTrashSuffix); }

/// True while `name` is still the file that `fd` has open.
Result<bool> IsStill(BorrowedFd root, const std::string& name, BorrowedFd fd) {
  PALMSHED_TRY(const struct stat opened, sys::Fstat(fd));
  auto named = sys::FstatAt(root, name, AT_SYMLINK_NOFOLLOW);
  if (!named && named.error().sys_errno == ENOENT) return false;
  if (!named) return std::unexpected(std::move(named.error()));
  return opened.st_dev == named->st_dev && opened.st_ino == named->st_ino;
}

/// False when a collector was quicker. Waits for no more than its unlink.
Result<bool> LockNew(BorrowedFd root, const std::string& name, BorrowedFd fd) {
  PALMSHED_TRY_VOID(sys::Flock(fd, LOCK_EX));
  return IsStill(root, name, fd);
}

/// A lock file with its lock taken. A collector that comes between making and locking finds it free
/// and deletes it; then the lock is worth nothing, and is made again.
Result<UniqueFd> MakeLock(BorrowedFd root, const std::string& name) {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    PALMSHED_TRY(UniqueFd fd,
                 sys::OpenAt(root, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
    const auto held = LockNew(root, name, fd.get());
    if (!held) {
      (void)sys::UnlinkAt(root, name);  // Whoever tries again makes it anew.
      return std::unexpected(held.error());
    }
    if (*held) return fd;
  }
  return std::unexpected(SysError("flock", EBUSY, name));
}

/// The directories in a record that are called by the sandbox's id; no others were ever written.
std::vector<std::string> ParseGroups(std::string_view text, const std::string& id) {
  std::vector<std::string> directories;
  for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (line.starts_with('/') && line.ends_with("/" + id)) directories.emplace_back(line);
  }
  return directories;
}

/// `home` is root's or the user's own, so nobody can put another thing in the place of what is
/// made.
Result<void> MakePlace(BorrowedFd home, const std::string& name, workspace::Owner owner,
                       mode_t mode) {
  PALMSHED_TRY_VOID(sys::MkdirAt(home, name, 0700));
  if (owner) PALMSHED_TRY_VOID(sys::LchownAt(home, name, *owner, *owner));
  if (mode == 0700) return {};
  return sys::ChmodAt(home, name, mode);
}

/// The groups of a sandbox whose record is in `home`, and then the record. No record: no groups.
Result<void> RemoveGroups(BorrowedFd root, const std::string& home, const std::string& id) {
  const std::string record = home + std::string(kGroupsFile);
  auto fd = sys::OpenAt(root, record, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!fd && fd.error().sys_errno == ENOENT) return {};
  if (!fd) return std::unexpected(std::move(fd.error()));
  std::string text(kMaxGroupsFile, '\0');
  PALMSHED_TRY(const std::size_t size,
               sys::Read(fd->get(), std::as_writable_bytes(std::span(text))));
  text.resize(size);
  PALMSHED_TRY_VOID(kernel::RemoveCgroups(ParseGroups(text, id)));
  auto unlinked = sys::UnlinkAt(root, record);
  if (!unlinked && unlinked.error().sys_errno == ENOENT) return {};  // A collector was quicker.
  return unlinked;
}

/// Most sandboxes leave their directories empty, and then that is all. False when there is more.
bool RemoveEmptyHome(BorrowedFd root, const std::string& id) {
  for (const char* name : {"/workspace", "/tmp"}) {
    if (!sys::UnlinkAt(root, id + name, AT_REMOVEDIR)) return false;
  }
  auto removed = sys::UnlinkAt(root, id, AT_REMOVEDIR);
  if (removed) return true;
  // What is left is the record of its groups, if there is one.
  return removed.error().sys_errno == ENOTEMPTY && RemoveGroups(root, id, id) &&
         sys::UnlinkAt(root, id, AT_REMOVEDIR);
}

/// Deletes what was moved out of the way. Groups that cannot be removed keep their record.
Result<void> RemoveTrash(BorrowedFd root, const std::string& id) {
  const std::string trash = TrashName(id);
  PALMSHED_TRY_VOID(RemoveGroups(root, trash, id));
  return workspace::RemoveTree(root, trash);
}

Result<void> RemoveLock(BorrowedFd root, const std::string& id) {
  auto unlinked = sys::UnlinkAt(root, LockName(id));
  if (!unlinked && unlinked.error().sys_errno != ENOENT) return unlinked;
  return {};
}

Result<void> MoveToTrash(BorrowedFd root, const std::string& id) {
  const std::string trash = TrashName(id);
  auto renamed = sys::RenameAt(root, id, root, trash);
  if (renamed || renamed.error().sys_errno == ENOENT) return {};
  // Trash of the same sandbox is in the way, left by somebody who was interrupted.
  PALMSHED_TRY_VOID(RemoveTrash(root, id));
  return sys::RenameAt(root, id, root, trash);
}

Error OnDisk(const Error& cause, const std::string& id) {
  if (cause.sys_errno == EEXIST) {
    return Error{.code = ErrorCode::kConflict, .message = id + " exists already", .op = cause.op};
  }
  return FsError(cause, id);
}

}  // namespace

bool IsSandboxId(std::string_view text) {
  if (!text.starts_with(kPrefix) || text.size() != kPrefix.size() + kDigits) return false;
  return std::ranges::all_of(text.substr(kPrefix.size()), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

std::optional<StateName> ParseStateName(std::string_view name) {
  StateName parsed{.id = std::string(name.substr(0, kPrefix.size() + kDigits)),
                   .kind = StateName::Kind::kHome};
  if (!IsSandboxId(parsed.id)) return std::nullopt;
  const std::string_view suffix = name.substr(parsed.id.size());
  if (suffix == kLockSuffix) parsed.kind = StateName::Kind::kLock;
  if (suffix == kTrashSuffix) parsed.kind = StateName::Kind::kTrash;
  if (!suffix.empty() && parsed.kind == StateName::Kind::kHome) return std::nullopt;
  return parsed;
}

std::string WorkspacePath(const HostDirectory& root, const std::string& id) {
  return root.path + "/" + id + "/workspace";
}

std::string TmpPath(const HostDirectory& root, const std::string& id) {
  return root.path + "/" + id + "/tmp";
}

SandboxHome::SandboxHome(const HostDirectory& root, std::string id, UniqueFd lock)
    : root_(&root), id_(std::move(id)), lock_(std::move(lock)) {}

Result<SandboxHome> SandboxHome::Create(const HostDirectory& root, std::string id,
                                        workspace::Owner owner) {
  PALMSHED_CHECK(IsSandboxId(id));
  auto lock = MakeLock(root.fd.get(), LockName(id));
  if (!lock) return std::unexpected(OnDisk(lock.error(), id));
  SandboxHome home(root, std::move(id), std::move(*lock));
  if (auto made = home.MakeDirectories(owner); !made) {
    // The failure to report is the first one; what stays is left to a collector.
    (void)home.Remove();
    return std::unexpected(OnDisk(made.error(), home.id_));
  }
  return home;
}

Result<void> SandboxHome::MakeDirectories(workspace::Owner owner) const {
  const BorrowedFd root = root_->fd.get();
  PALMSHED_TRY_VOID(sys::MkdirAt(root, id_, 0700));
  PALMSHED_TRY(const UniqueFd home, sys::OpenAt(root, id_, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  PALMSHED_TRY_VOID(MakePlace(home.get(), "workspace", owner, 0700));
  // Programs expect the usual mode of /tmp; nobody else can reach it through its parent.
  return MakePlace(home.get(), "tmp", owner, 01777);
}

UniqueFd SandboxHome::TakeLock() { return std::move(lock_); }

Result<void> SandboxHome::RecordGroups(const std::vector<std::string>& directories) const {
  std::string text;
  for (const std::string& directory : directories) text += directory + "\n";
  PALMSHED_CHECK(text.size() <= kMaxGroupsFile);
  // Not O_EXCL, nor O_TRUNC: after a failure it is written over, and not made empty before.
  PALMSHED_TRY(const UniqueFd fd, sys::OpenAt(root_->fd.get(), id_ + std::string(kGroupsFile),
                                              O_WRONLY | O_CREAT | O_NOFOLLOW, 0600));
  // One write: a record that is cut short names no group that is not ours.
  PALMSHED_TRY_VOID(sys::WriteAll(fd.get(), std::as_bytes(std::span(text))));
  return sys::Ftruncate(fd.get(), text.size());
}

Result<void> SandboxHome::Remove() {
  auto removed = RemoveHome(root_->fd.get(), id_);
  if (!removed) return std::unexpected(OnDisk(removed.error(), id_));
  lock_.reset();
  return {};
}

LockAlone::LockAlone(BorrowedFd root, std::string id, UniqueFd lock)
    : root_(root), id_(std::move(id)), lock_(std::move(lock)) {}

Result<LockAlone> LockAlone::Take(BorrowedFd root) {
  std::string id = MakeId(kPrefix);
  PALMSHED_TRY(UniqueFd lock, MakeLock(root, LockName(id)));
  return LockAlone(root, std::move(id), std::move(lock));
}

LockAlone::~LockAlone() {
  if (lock_.valid()) (void)RemoveLock(root_, id_);
}

bool HasHome(BorrowedFd root, const std::string& id) {
  return sys::FstatAt(root, id, AT_SYMLINK_NOFOLLOW) ||
         sys::FstatAt(root, TrashName(id), AT_SYMLINK_NOFOLLOW);
}

Result<void> RemoveHome(BorrowedFd root, const std::string& id) {
  if (!RemoveEmptyHome(root, id)) PALMSHED_TRY_VOID(MoveToTrash(root, id));
  PALMSHED_TRY_VOID(RemoveTrash(root, id));
  return RemoveLock(root, id);
}

Result<std::optional<UniqueFd>> TakeDeadLock(BorrowedFd root, const std::string& id) {
  const std::string name = LockName(id);
  auto fd = sys::OpenAt(root, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
  if (!fd && fd.error().sys_errno == ENOENT) return std::optional<UniqueFd>();
  if (!fd) return std::unexpected(std::move(fd.error()));
  auto locked = sys::Flock(fd->get(), LOCK_EX | LOCK_NB);
  if (!locked && locked.error().sys_errno == EWOULDBLOCK) return std::optional<UniqueFd>();
  if (!locked) return std::unexpected(std::move(locked.error()));
  // Another collector may have deleted it since it was opened.
  PALMSHED_TRY(const bool still, IsStill(root, name, fd->get()));
  if (!still) return std::optional<UniqueFd>();
  return std::move(*fd);
}

}  // namespace palmshed::backends::native
