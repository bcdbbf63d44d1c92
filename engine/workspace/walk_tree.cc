// Theory of operation: a depth-first walk that has read a directory to its end before it goes down,
// so a directory needs its descriptor again only for going down and for coming back up. The last
// few on the way stay open; the way back to one that does not is "..", and that is believed only
// when it leads to the very directory, since a program may have moved the lower one meanwhile.
#include "workspace/walk_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <expected>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::workspace {
namespace {

constexpr std::size_t kMaxOpen = 24;
constexpr std::size_t kEntriesBuffer = 64U << 10;
constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK;

bool IsGone(const Error& error) {
  // ELOOP, ENOTDIR: something else has the name now.
  return error.sys_errno == ENOENT || error.sys_errno == ENOTDIR || error.sys_errno == ELOOP;
}

bool IsSame(const struct statx& a, const struct statx& b) {
  return a.stx_ino == b.stx_ino && a.stx_dev_major == b.stx_dev_major &&
         a.stx_dev_minor == b.stx_dev_minor;
}

bool IsDots(const char* name) {
  return std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0;
}

/// A directory that is being read, and the mode it is to be left with if it had to be opened up.
struct Opened {
  UniqueFd fd;
  std::optional<mode_t> closed_mode{};
};

/// The owner may open it after all; for root there is no such thing as closed. It has to stay open
/// while names in it are looked up.
Result<Opened> OpenClosed(BorrowedFd parent, const std::string& name) {
  PALMSHED_TRY(const UniqueFd closed, sys::OpenAt(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW));
  PALMSHED_TRY(const struct stat st, sys::Fstat(closed.get()));
  const mode_t mode = st.st_mode & 07777U;
  PALMSHED_TRY_VOID(sys::ChmodOpened(closed.get(), mode | 0700U));
  PALMSHED_TRY(UniqueFd fd, sys::OpenAt(closed.get(), ".", kDirectoryFlags));
  return Opened{.fd = std::move(fd), .closed_mode = mode};
}

Result<Opened> OpenDirectory(BorrowedFd parent, const std::string& name) {
  auto opened = sys::OpenAt(parent, name, kDirectoryFlags);
  if (!opened && opened.error().sys_errno == EACCES) return OpenClosed(parent, name);
  if (!opened) return std::unexpected(std::move(opened.error()));
  if (::faccessat(opened->get(), ".", X_OK, AT_EACCESS) == 0)
    return Opened{.fd = std::move(*opened)};
  return OpenClosed(parent, name);
}

class Walk {
 public:
  explicit Walk(TreeVisitor& visitor) : visitor_(visitor), buffer_(kEntriesBuffer) {}
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;
  ~Walk() {
    for (const Level& level : levels_) Leave(level.opened);
  }

  Result<bool> From(BorrowedFd root) {
    PALMSHED_TRY(UniqueFd top, sys::OpenAt(root, ".", kDirectoryFlags));
    PALMSHED_TRY(const struct statx st, sys::StatxAt(top.get(), ""));
    PALMSHED_TRY_VOID(Enter({.fd = std::move(top)}, {}, st));
    while (!ended_) {
      if (levels_.back().below.empty()) {
        if (levels_.size() == 1) return true;
        PALMSHED_TRY_VOID(GoUp());
      } else {
        PALMSHED_TRY_VOID(GoDown());
      }
    }
    return false;
  }

 private:
  struct Level {
    Opened opened;
    std::string name;
    struct statx st;
    std::vector<std::string> below{};  ///< Directories in it that are still to be entered.
  };

  static void Leave(const Opened& opened) {
    if (!opened.closed_mode || !opened.fd.valid()) return;
    (void)sys::Fchmod(opened.fd.get(), *opened.closed_mode);  // Ignoring: it may be gone by now.
  }

  Result<void> Enter(Opened opened, std::string name, const struct statx& st) {
    levels_.push_back({.opened = std::move(opened), .name = std::move(name), .st = st});
    if (levels_.size() > kMaxOpen) levels_[levels_.size() - 1 - kMaxOpen].opened.fd.reset();
    return ReadLevel(levels_.back());
  }

  Result<void> ReadLevel(Level& level) {
    while (!ended_) {
      PALMSHED_TRY(const std::size_t size, sys::ReadEntries(level.opened.fd.get(), buffer_));
      if (size == 0) return {};
      PALMSHED_TRY_VOID(ShowEntries(level, size));
    }
    return {};
  }

  Result<void> ShowEntries(Level& level, std::size_t size) {
    for (std::size_t at = 0; at < size && !ended_;) {
      // The kernel aligns each to 8 bytes, and so is the buffer.
      const auto* entry = reinterpret_cast<const dirent64*>(buffer_.data() + at);
      at += entry->d_reclen;
      if (IsDots(entry->d_name)) continue;
      auto st = sys::StatxAt(level.opened.fd.get(), entry->d_name);
      if (!st && IsGone(st.error())) continue;
      if (!st) return std::unexpected(std::move(st.error()));
      if (S_ISDIR(st->stx_mode)) level.below.emplace_back(entry->d_name);
      ended_ = !visitor_.See(level.opened.fd.get(), entry->d_name, *st);
    }
    return {};
  }

  Result<void> GoDown() {
    std::string name = std::move(levels_.back().below.back());
    levels_.back().below.pop_back();
    auto opened = OpenDirectory(levels_.back().opened.fd.get(), name);
    if (!opened && IsGone(opened.error())) return {};
    if (!opened) return std::unexpected(std::move(opened.error()));
    PALMSHED_TRY(const struct statx st, sys::StatxAt(opened->fd.get(), ""));
    visitor_.Enter(name.c_str());
    return Enter(std::move(*opened), std::move(name), st);
  }

  Result<void> GoUp() {
    const Level left = std::move(levels_.back());
    levels_.pop_back();
    Level& level = levels_.back();
    if (!level.opened.fd.valid()) {
      PALMSHED_TRY(level.opened.fd, sys::OpenAt(left.opened.fd.get(), "..", kDirectoryFlags));
      PALMSHED_TRY(const struct statx st, sys::StatxAt(level.opened.fd.get(), ""));
      if (!IsSame(st, level.st)) return std::unexpected(SysError("openat", EAGAIN, left.name));
    }
    Leave(left.opened);
    visitor_.Leave(level.opened.fd.get(), left.name.c_str(), left.st);
    return {};
  }

  TreeVisitor& visitor_;
  std::vector<std::byte> buffer_;
  std::vector<Level> levels_{};
  bool ended_ = false;
};

}  // namespace

Result<bool> WalkTree(BorrowedFd root, TreeVisitor& visitor) { return Walk(visitor).From(root); }

}  // namespace palmshed::workspace
