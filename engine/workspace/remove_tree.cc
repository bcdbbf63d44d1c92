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

constexpr int kMaxOpen = 24;    // Directories open at once, below the top.
constexpr int kMaxPasses = 64;  // Passes that move nothing up; more: somebody fills the tree.
constexpr std::uint64_t kMaxMoves = 1'000'000;
constexpr mode_t kAccessible = 0700;

bool IsGone(const Error& error) { return error.sys_errno == ENOENT; }

/// unlinkat(2), which says EISDIR for a directory; EPERM is what POSIX has it say.
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

class TreeRemover {
 public:
  explicit TreeRemover(BorrowedFd top) : top_(top) {}

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
  std::uint64_t moves() const { return moves_; }

 private:
  void Fail(Error error) {
    if (!failure_) failure_ = std::move(error);
  }

  /// Takes note of how a deletion went; true when the name is gone.
  bool Note(Result<void> done) {
    if (done || IsGone(done.error())) return progress_ = true;
    Fail(std::move(done.error()));
    return false;
  }

  void Empty(UniqueFd fd, int depth) {
    auto directory = sys::Directory::Read(std::move(fd));
    if (!directory) return Fail(std::move(directory.error()));
    while (true) {
      auto entry = directory->Next();
      if (!entry) return Fail(std::move(entry.error()));
      if (!*entry) return;
      Remove(directory->fd(), **entry, depth);
    }
  }

  void Remove(BorrowedFd parent, const sys::Directory::Entry& entry, int depth) {
    if (entry.type != DT_DIR) {
      auto done = sys::UnlinkAt(parent, entry.name);
      if (done || !IsDirectory(done.error())) return (void)Note(std::move(done));
    }
    auto fd = OpenToEmpty(parent, entry.name);
    if (!fd && IsGone(fd.error())) return;
    if (!fd) return Fail(std::move(fd.error()));
    if (depth < kMaxOpen) Empty(std::move(*fd), depth + 1);
    auto done = sys::UnlinkAt(parent, entry.name, AT_REMOVEDIR);
    if (depth == kMaxOpen && !done && done.error().sys_errno == ENOTEMPTY) {
      return MoveUp(parent, entry.name);
    }
    (void)Note(std::move(done));
  }

  void MoveUp(BorrowedFd parent, const std::string& name) {
    const std::string place = ".palmshed-deep-" + std::to_string(moves_++);
    (void)Note(sys::RenameAt(parent, name, top_, place));
  }

  BorrowedFd top_;
  bool progress_ = false;
  std::uint64_t moves_ = 0;
  std::optional<Error> failure_;
};

Result<void> RemoveDirectory(BorrowedFd parent, const std::string& name, BorrowedFd top) {
  TreeRemover remover(top);
  for (int passes = 0; passes < kMaxPasses && remover.moves() < kMaxMoves;) {
    const std::uint64_t moves = remover.moves();
    const bool progress = remover.Pass();
    auto done = sys::UnlinkAt(parent, name, AT_REMOVEDIR);
    if (done || IsGone(done.error())) return {};
    if (done.error().sys_errno != ENOTEMPTY) return done;
    if (!progress && remover.failure()) return std::unexpected(*remover.failure());
    if (remover.moves() == moves) ++passes;
  }
  return std::unexpected(SysError("unlinkat", ENOTEMPTY, name + ", which is being written to"));
}

}  // namespace

Result<void> RemoveTree(BorrowedFd parent, const std::string& name) {
  auto done = sys::UnlinkAt(parent, name);
  if (done || IsGone(done.error())) return {};
  if (!IsDirectory(done.error())) return done;
  auto top = OpenToEmpty(parent, name);
  if (!top && IsGone(top.error())) return {};
  if (!top) return std::unexpected(std::move(top.error()));
  return RemoveDirectory(parent, name, top->get());
}

}  // namespace palmshed::workspace
