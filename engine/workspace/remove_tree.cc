// Theory of operation: a depth-first walk that keeps the directories above it open, but only so
// many. A directory deeper than that is moved up, into the top of the tree, and meets the walk
// there again in its next pass. Nothing ever goes up through "..", which would lead astray once a
// program moves a directory that is being deleted.
#include "workspace/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::workspace {
namespace {

constexpr int kMaxOpen = 24;  // Directories open at once, below the top.
constexpr int kMaxIdlePasses =
    64;  // Passes in a row that find nothing to delete, yet it is not empty.
constexpr mode_t kAccessible = 0700;

bool IsGone(const Error& error) { return error.sys_errno == ENOENT; }

/// What unlinkat(2) says of a directory on Linux.
bool IsDirectory(const Error& error) { return error.sys_errno == EISDIR; }

Result<UniqueFd> OpenDirectory(BorrowedFd parent, const std::string& name) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
  auto fd = sys::OpenAt(parent, name, kFlags);
  if (fd || fd.error().sys_errno != EACCES) return fd;
  PALMSHED_TRY(const UniqueFd closed, sys::OpenAt(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW));
  PALMSHED_TRY_VOID(sys::ChmodOpened(closed.get(), kAccessible));
  return sys::OpenAt(parent, name, kFlags);
}

/// Opens a directory to delete what is in it.
Result<UniqueFd> OpenToEmpty(BorrowedFd parent, const std::string& name) {
  PALMSHED_TRY(UniqueFd fd, OpenDirectory(parent, name));
  PALMSHED_TRY(const struct stat st, sys::Fstat(fd.get()));
  if ((st.st_mode & kAccessible) != kAccessible) {
    // Ignoring a failure, because deleting the names will fail and say why.
    (void)sys::Fchmod(fd.get(), kAccessible);
  }
  return fd;
}

using Clock = std::chrono::steady_clock;

class TreeRemover {
 public:
  /// `prefix` is of this remover alone: several may work on one tree.
  TreeRemover(BorrowedFd top, std::string prefix, Clock::time_point deadline)
      : top_(top), prefix_(std::move(prefix)), deadline_(deadline) {}

  /// One walk over the tree. False when it deleted and moved nothing.
  bool Pass() {
    progress_ = false;
    failure_.reset();
    auto top = sys::OpenAt(top_, ".", O_RDONLY | O_DIRECTORY);
    if (!top) return Fail(std::move(top.error())), false;
    Empty(std::move(*top), 0);
    return progress_;
  }

  /// The first failure of the last pass.
  const std::optional<Error>& failure() const { return failure_; }
  bool Late() const { return Clock::now() > deadline_; }

 private:
  void Fail(Error error) {
    if (!failure_) failure_ = std::move(error);
  }

  /// Takes note of how a deletion went. A directory that has filled again is for the next pass.
  void Note(Result<void> done) {
    if (done || IsGone(done.error())) {
      progress_ = true;
    } else if (done.error().sys_errno != ENOTEMPTY) {
      Fail(std::move(done.error()));
    }
  }

  void Empty(UniqueFd fd, int depth) {
    auto directory = sys::Directory::Read(std::move(fd));
    if (!directory) return Fail(std::move(directory.error()));
    while (!Late()) {
      auto entry = directory->Next();
      // A directory that somebody else has deleted meanwhile has no names, says readdir(3).
      if (!entry && IsGone(entry.error())) return;
      if (!entry) return Fail(std::move(entry.error()));
      if (!*entry) return;
      Remove(directory->fd(), **entry, depth);
    }
  }

  void Remove(BorrowedFd parent, const sys::Directory::Entry& entry, int depth) {
    if (entry.type != DT_DIR) {
      auto done = sys::UnlinkAt(parent, entry.name);
      if (done || !IsDirectory(done.error())) return Note(std::move(done));
    }
    auto fd = OpenToEmpty(parent, entry.name);
    if (!fd && IsGone(fd.error())) return Note({});
    if (!fd) return Fail(std::move(fd.error()));
    if (depth < kMaxOpen) Empty(std::move(*fd), depth + 1);
    auto done = sys::UnlinkAt(parent, entry.name, AT_REMOVEDIR);
    if (depth == kMaxOpen && !done && done.error().sys_errno == ENOTEMPTY) {
      return MoveUp(parent, entry.name);
    }
    Note(std::move(done));
  }

  void MoveUp(BorrowedFd parent, const std::string& name) {
    Note(sys::RenameAt(parent, name, top_, prefix_ + std::to_string(moves_++)));
  }

  BorrowedFd top_;
  std::string prefix_;
  Clock::time_point deadline_;
  bool progress_ = false;
  std::uint64_t moves_ = 0;
  std::optional<Error> failure_;
};

Result<void> RemoveDirectory(BorrowedFd parent, const std::string& name, BorrowedFd top,
                             Clock::time_point deadline) {
  PALMSHED_TRY(const std::string unique, sys::RandomHex(8));
  TreeRemover remover(top, ".palmshed-" + unique + "-", deadline);
  for (int idle = 0; idle < kMaxIdlePasses && !remover.Late(); ++idle) {
    const bool progress = remover.Pass();
    auto done = sys::UnlinkAt(parent, name, AT_REMOVEDIR);
    if (done || IsGone(done.error())) return {};
    if (done.error().sys_errno != ENOTEMPTY) return done;
    if (!progress && remover.failure()) return std::unexpected(*remover.failure());
    if (progress) idle = 0;
  }
  return std::unexpected(remover.failure().value_or(SysError("unlinkat", ENOTEMPTY, name)));
}

}  // namespace

Result<void> RemoveTree(BorrowedFd parent, const std::string& name,
                        std::chrono::milliseconds limit) {
  auto done = sys::UnlinkAt(parent, name);
  if (done || IsGone(done.error())) return {};
  if (!IsDirectory(done.error())) return done;
  auto top = OpenToEmpty(parent, name);
  if (!top && IsGone(top.error())) return {};
  if (!top) return std::unexpected(std::move(top.error()));
  return RemoveDirectory(parent, name, top->get(), Clock::now() + limit);
}

}  // namespace palmshed::workspace
