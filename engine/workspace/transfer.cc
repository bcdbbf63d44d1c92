// Files between the host and a workspace: the two members of Workspace whose other end is a path of
// the host. That path is the caller's own and is resolved as any program would; what lies below an
// uploaded directory is walked by descriptors, so that a tree that changes meanwhile cannot lead
// the walk elsewhere.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
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
#include "workspace/disk_account.h"
#include "workspace/new_directory.h"
#include "workspace/new_file.h"
#include "workspace/new_link.h"
#include "workspace/path.h"
#include "workspace/resolve.h"
#include "workspace/upload_size.h"
#include "workspace/workspace.h"

namespace palmshed::workspace {
namespace {

constexpr mode_t kPermissionBits = 0777;
constexpr mode_t kUnfinishedMode = 0700;
constexpr int kMaxTreeDepth = 100;  // Two descriptors a level.

Error HostError(const std::string& path, std::string_view problem) {
  return Error{.code = ErrorCode::kFsError,
               .message = path + " " + std::string(problem),
               .field = "hostPath"};
}

/// A system call on the host's side of a transfer failed.
Error HostError(const std::string& path, const Error& cause) {
  Error error = FsError(cause, path);
  if (cause.sys_errno == ENOENT) error.code = ErrorCode::kNotFound;
  error.field = "hostPath";
  return error;
}

template <class T>
Result<T> OnHost(Result<T> result, const std::string& path) {
  if (!result) return std::unexpected(HostError(path, result.error()));
  return result;
}

Result<std::string> ParseHostPath(std::string_view path) {
  if (path.empty()) return std::unexpected(InvalidOption("hostPath", "is empty"));
  if (!path.contains('\0')) return std::string(path);
  return std::unexpected(InvalidOption("hostPath", "contains a NUL byte"));
}

bool IsSame(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// One upload of a directory. Paths in here are the host's and serve messages only.
class TreeUpload {
 public:
  /// `workspace` is recognised when the walk meets it: a tree that holds it would never end.
  TreeUpload(Owner owner, const struct stat& workspace) : owner_(owner), workspace_(workspace) {}

  /// Copies what is in `source` into `target`. `depth`: levels of `target` below the workspace.
  Result<void> CopyInto(UniqueFd source, BorrowedFd target, std::size_t depth,
                        const std::string& path) {
    PALMSHED_TRY_VOID(CheckSource(source.get(), target, path));
    PALMSHED_TRY(auto directory, OnHost(sys::Directory::Read(std::move(source)), path));
    ++level_;
    while (true) {
      PALMSHED_TRY(auto entry, OnHost(directory.Next(), path));
      if (!entry) break;
      PALMSHED_TRY_VOID(
          CopyEntry(directory.fd(), entry->name, target, depth, path + "/" + entry->name));
    }
    --level_;
    return {};
  }

  /// Gives a directory that was just filled the owner, mode and time it is to have.
  Result<void> Finish(BorrowedFd directory, const struct stat& source) const {
    if (owner_) PALMSHED_TRY_VOID(sys::Fchown(directory, *owner_, *owner_));
    PALMSHED_TRY_VOID(sys::SetModified(directory, source.st_mtim));
    return sys::Fchmod(directory, source.st_mode & kPermissionBits);
  }

  Result<void> CopyFile(BorrowedFd source, const struct stat& st, BorrowedFd target,
                        const std::string& name, const std::string& path) const {
    PALMSHED_TRY(NewFile file, OnHost(NewFile::Create(target, owner_), path));
    PALMSHED_TRY_VOID(OnHost(CopyContent(source, file.fd()), path));
    PALMSHED_TRY_VOID(OnHost(sys::SetModified(file.fd(), st.st_mtim), path));
    return OnHost(file.Publish(name, st.st_mode & kPermissionBits), path);
  }

 private:
  /// Refuses trees that never end: too deep ones, and those that hold what is being filled.
  Result<void> CheckSource(BorrowedFd source, BorrowedFd target, const std::string& path) {
    if (level_ == kMaxTreeDepth) {
      return std::unexpected(HostError(path, "is nested deeper than 100 directories"));
    }
    if (level_ == 0) {
      PALMSHED_TRY(top_, OnHost(sys::Fstat(target), path));
    }
    PALMSHED_TRY(const struct stat st, OnHost(sys::Fstat(source), path));
    if (!IsSame(st, workspace_) && !IsSame(st, top_)) return {};
    return std::unexpected(HostError(path, "is what it would be copied into"));
  }

  Result<void> CopyEntry(BorrowedFd from, const std::string& name, BorrowedFd target,
                         std::size_t depth, const std::string& path) {
    PALMSHED_TRY(struct stat st, OnHost(sys::FstatAt(from, name, AT_SYMLINK_NOFOLLOW), path));
    if (S_ISLNK(st.st_mode)) return CopyLink(from, name, target, depth, path);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
      return std::unexpected(HostError(path, "is neither a file, a directory nor a link"));
    }
    PALMSHED_TRY(
        UniqueFd source,
        OnHost(sys::OpenAt(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY), path));
    PALMSHED_TRY(st, OnHost(sys::Fstat(source.get()), path));
    if (S_ISDIR(st.st_mode)) return CopyDirectory(std::move(source), st, target, name, depth, path);
    if (S_ISREG(st.st_mode)) return CopyFile(source.get(), st, target, name, path);
    return std::unexpected(HostError(path, "was replaced while it was copied"));
  }

  Result<void> CopyDirectory(UniqueFd source, const struct stat& st, BorrowedFd target,
                             const std::string& name, std::size_t depth, const std::string& path) {
    auto made = sys::MkdirAt(target, name, kUnfinishedMode);
    if (!made && made.error().sys_errno != EEXIST) return OnHost(std::move(made), path);
    PALMSHED_TRY(const UniqueFd into,
                 OnHost(sys::OpenAt(target, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW), path));
    PALMSHED_TRY_VOID(CopyInto(std::move(source), into.get(), depth + 1, path));
    return made ? OnHost(Finish(into.get(), st), path) : Result<void>();
  }

  Result<void> CopyLink(BorrowedFd from, const std::string& name, BorrowedFd target,
                        std::size_t depth, const std::string& path) const {
    PALMSHED_TRY(const std::string to, OnHost(sys::ReadlinkAt(from, name), path));
    if (!LinkStaysInside(depth, to)) {
      return std::unexpected(HostError(path, "is a link that leaves the workspace"));
    }
    return OnHost(PutSymlink(to, target, name, owner_), path);
  }

  Owner owner_;
  struct stat workspace_;
  struct stat top_{};  ///< The directory that is filled first.
  int level_ = 0;
};

/// Opens what an upload starts from: a link is the caller's own and is followed.
Result<UniqueFd> OpenSource(const std::string& path) {
  PALMSHED_TRY(const UniqueFd look, OnHost(sys::Open(path, O_PATH), path));
  PALMSHED_TRY(const struct stat st, OnHost(sys::Fstat(look.get()), path));
  if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) {
    return OnHost(sys::Open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY), path);
  }
  return std::unexpected(HostError(path, "is neither a file nor a directory"));
}

struct HostDirectory {
  UniqueFd fd;
  struct stat st;
  std::string path;
};

Result<void> UploadDirectory(HostDirectory source, BorrowedFd root, const Owner& owner,
                             const SandboxPath& to, TreeUpload& upload) {
  const std::size_t depth = DepthOf(to.Text());
  auto there = OpenInside(root, to, O_RDONLY | O_DIRECTORY);
  if (there) return upload.CopyInto(std::move(source.fd), there->get(), depth, source.path);
  if (there.error().sys_errno != ENOENT) return std::unexpected(std::move(there.error()));
  PALMSHED_TRY(const SandboxPath unslashed, SandboxPath::Parse(to.Text()));
  PALMSHED_TRY(const Leaf leaf, OpenLeafToWrite(root, owner, unslashed));
  auto made = MakeWhole(leaf, [&](BorrowedFd fd) -> Result<void> {
    PALMSHED_TRY_VOID(upload.CopyInto(std::move(source.fd), fd, depth, source.path));
    return upload.Finish(fd, source.st);
  });
  // What the walk itself reports names the host's side already.
  if (!made && made.error().field.empty()) return std::unexpected(FileError(made.error(), to));
  return made;
}

DiskChange ChangeByUpload(BorrowedFd source, const struct stat& st, BorrowedFd root,
                          const SandboxPath& to) {
  const auto there = OpenInside(root, to, O_PATH);
  if (S_ISDIR(st.st_mode)) {
    DiskChange change = ChangeByTree(source, there ? there->get() : -1);
    if (!there) change.more += RoomFor(1);
    return change;
  }
  DiskChange change{.more = RoomForCopy(source, st)};
  const auto replaced = there ? sys::Fstat(there->get()) : Result<struct stat>(st);
  if (there && replaced) change.less = RoomOf(*replaced);
  return change;
}

/// The directory and the name in it that a host path ends with.
std::pair<std::string, std::string> SplitHostPath(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {path.substr(0, slash + 1), path.substr(slash + 1)};
}

Result<void> CheckHostTarget(BorrowedFd dir, const std::string& name, const std::string& path) {
  if (name.empty() || name == "." || name == "..") {
    return std::unexpected(HostError(path, "does not name a file"));
  }
  auto st = sys::FstatAt(dir, name, AT_SYMLINK_NOFOLLOW);
  if (!st && st.error().sys_errno == ENOENT) return {};
  if (!st) return std::unexpected(HostError(path, st.error()));
  if (S_ISREG(st->st_mode)) return {};
  // Replacing a link would surprise, and replacing /dev/stdout would break the host.
  return std::unexpected(HostError(path, "exists and is not a regular file"));
}

}  // namespace

Result<void> Workspace::UploadFile(std::string_view host_path, std::string_view path) const {
  PALMSHED_TRY(const std::string from, ParseHostPath(host_path));
  PALMSHED_TRY(const SandboxPath to, SandboxPath::Parse(path));
  PALMSHED_TRY(UniqueFd source, OpenSource(from));
  PALMSHED_TRY(const struct stat st, OnHost(sys::Fstat(source.get()), from));
  if (!account_) return Upload(std::move(source), st, from, to);
  const DiskChange change = ChangeByUpload(source.get(), st, root_.get(), to);
  return InQuota(change, [&] { return Upload(std::move(source), st, from, to); });
}

Result<void> Workspace::Upload(UniqueFd source, const struct stat& st, const std::string& from,
                               const SandboxPath& to) const {
  PALMSHED_TRY(const struct stat workspace, OnHost(sys::Fstat(root_.get()), from));
  TreeUpload upload(owner_, workspace);
  if (S_ISDIR(st.st_mode)) {
    return UploadDirectory({.fd = std::move(source), .st = st, .path = from}, root_.get(), owner_,
                           to, upload);
  }
  PALMSHED_TRY(const Leaf leaf, OpenLeafToWrite(root_.get(), owner_, to));
  PALMSHED_TRY_VOID(CheckReplaceable(leaf, to));
  return upload.CopyFile(source.get(), st, leaf.parent.get(), leaf.name, from);
}

Result<void> Workspace::DownloadFile(std::string_view path, std::string_view host_path) const {
  PALMSHED_TRY(const SandboxPath from, SandboxPath::Parse(path));
  PALMSHED_TRY(const std::string to, ParseHostPath(host_path));
  PALMSHED_TRY(const UniqueFd source, OpenRegular(root_.get(), from));
  PALMSHED_TRY(const struct stat st, OnHost(sys::Fstat(source.get()), to));
  const auto [dir_path, name] = SplitHostPath(to);
  PALMSHED_TRY(const UniqueFd dir, OnHost(sys::Open(dir_path, O_PATH | O_DIRECTORY), to));
  PALMSHED_TRY_VOID(CheckHostTarget(dir.get(), name, to));
  PALMSHED_TRY(NewFile file, OnHost(NewFile::Create(dir.get(), std::nullopt), to));
  PALMSHED_TRY_VOID(OnHost(CopyContent(source.get(), file.fd()), to));
  return OnHost(file.Publish(name, st.st_mode & kPermissionBits), to);
}

}  // namespace palmshed::workspace
