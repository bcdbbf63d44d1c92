#include "workspace/resolve.h"

#include <fcntl.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "workspace/path.h"

namespace palmshed::workspace {
namespace {

constexpr mode_t kParentMode = 0755;
constexpr mode_t kUnfinishedMode = 0700;
constexpr int kMaxLinks = 40;  // As the kernel's own limit, path_resolution(7).
constexpr std::string_view kLeaves = "leaves the workspace";

/// What an errno means to somebody who named a path; empty: the kernel's own words will do.
std::string_view Meaning(int sys_errno) {
  switch (sys_errno) {
    case EXDEV:
      return kLeaves;
    case ENOENT:
      return "does not exist";
    case ELOOP:
      return "leads through a loop of symbolic links";
    case EISDIR:
      return "is a directory";
    case ENOTDIR:
      return "is not a directory, or leads through a file";
    case ENOTEMPTY:
      return "is a directory that is not empty";
    case EAGAIN:
      return "was being changed by the program meanwhile";
    default:
      return {};
  }
}

/// The error for a path whose last component is not a name: the workspace itself, or "..".
Result<Leaf> RefuseAsLeaf(BorrowedFd root, const SandboxPath& path) {
  PALMSHED_TRY_VOID(OpenInside(root, path, O_PATH));  // What leaves is told so.
  if (path.IsRoot()) return std::unexpected(FileError(path, "is the workspace itself"));
  return std::unexpected(FileError(path, "must not end in \"..\""));
}

/// Opens `dir`/`name` if it is there and makes it otherwise.
Result<void> MakeIfMissing(BorrowedFd root, const Owner& owner, const SandboxPath& path,
                           mode_t mode) {
  if (auto open = sys::OpenBeneath(root, path.Text(), O_PATH | O_DIRECTORY); open) return {};
  PALMSHED_TRY(const Leaf leaf, OpenLeaf(root, path));
  auto made = MakeOneDirectory(leaf.parent.get(), leaf.name, owner, mode);
  // Somebody else's directory will do as well; whatever else stands there shows when it is opened.
  if (made || made.error().sys_errno == EEXIST) return {};
  return std::unexpected(FileError(made.error(), path));
}

Result<void> MakeAllMissing(BorrowedFd root, const Owner& owner, const SandboxPath& path,
                            mode_t mode) {
  const std::string text = path.Text();
  for (std::size_t end = text.find('/'); end != std::string::npos; end = text.find('/', end + 1)) {
    PALMSHED_TRY(const SandboxPath prefix,
                 SandboxPath::Parse(std::string_view(text).substr(0, end)));
    if (prefix.name() == "..") continue;
    PALMSHED_TRY_VOID(MakeIfMissing(root, owner, prefix, kParentMode));
  }
  return path.name() == ".." ? Result<void>() : MakeIfMissing(root, owner, path, mode);
}

/// Something else, or nothing.
bool IsNoLink(const Error& error) { return error.sys_errno == EINVAL || error.sys_errno == ENOENT; }

/// The path that a link in the last place of `path` leads to.
Result<SandboxPath> Redirect(const SandboxPath& path, const std::string& target) {
  if (target.starts_with('/')) return std::unexpected(FileError(path, kLeaves));
  return SandboxPath::Parse(path.parent() + "/" + target);
}

}  // namespace

Error FileError(const SandboxPath& path, std::string_view problem) {
  const std::string_view name = path.given().empty() ? "." : std::string_view(path.given());
  return Error{.code = ErrorCode::kFsError,
               .message = std::string(name).append(" ").append(problem),
               .field = "path"};
}

Error FileError(const Error& cause, const SandboxPath& path) {
  if (cause.sys_errno == 0) return cause;
  // Of a path that would climb out, what is missing on the way says nothing.
  if (cause.sys_errno == ENOENT && !LinkStaysInside(0, path.given())) {
    return FileError(path, kLeaves);
  }
  const std::string_view meaning = Meaning(cause.sys_errno);
  Error error = meaning.empty()
                    ? SysError(ErrorCode::kFsError, cause.op, cause.sys_errno, path.given())
                    : FileError(path, meaning);
  if (cause.code == ErrorCode::kOverloaded) error.code = cause.code;
  if (cause.sys_errno == ENOENT) error.code = ErrorCode::kNotFound;
  error.field = "path";
  error.op = cause.op;
  error.sys_errno = cause.sys_errno;
  return error;
}

Result<UniqueFd> OpenInside(BorrowedFd root, const SandboxPath& path, int flags) {
  if (path.directory_only()) flags |= O_DIRECTORY;
  auto fd = sys::OpenBeneath(root, path.Text(), flags);
  if (!fd) return std::unexpected(FileError(fd.error(), path));
  return fd;
}

Result<Leaf> OpenLeaf(BorrowedFd root, const SandboxPath& path) {
  if (path.IsRoot() || path.name() == "..") return RefuseAsLeaf(root, path);
  auto parent = sys::OpenBeneath(root, path.parent(), O_PATH | O_DIRECTORY);
  if (!parent) return std::unexpected(FileError(parent.error(), path));
  return Leaf{.parent = std::move(*parent), .name = path.name()};
}

Result<Leaf> OpenLeafToWrite(BorrowedFd root, const Owner& owner, const SandboxPath& path) {
  if (path.IsRoot() || path.name() == "..") return RefuseAsLeaf(root, path);
  if (path.directory_only()) return std::unexpected(FileError(path, "names a directory"));
  PALMSHED_TRY(const SandboxPath parent, SandboxPath::Parse(path.parent()));
  auto made = OpenOrMakeDirectory(root, owner, parent, kParentMode);
  if (!made) return std::unexpected(FileError(made.error(), path));
  Leaf leaf{.parent = std::move(*made), .name = path.name()};
  SandboxPath place = path;
  for (int links = 0; links < kMaxLinks; ++links) {
    auto target = sys::ReadlinkAt(leaf.parent.get(), leaf.name);
    if (!target && IsNoLink(target.error())) return leaf;
    if (!target) return std::unexpected(FileError(target.error(), path));
    PALMSHED_TRY(place, Redirect(place, *target));
    auto next = OpenLeaf(root, place);
    if (!next) return std::unexpected(FileError(next.error(), path));
    leaf = std::move(*next);
  }
  return std::unexpected(FileError(SysError("readlinkat", ELOOP), path));
}

Result<UniqueFd> OpenOrMakeDirectory(BorrowedFd root, const Owner& owner, const SandboxPath& path,
                                     mode_t mode) {
  auto there = sys::OpenBeneath(root, path.Text(), O_PATH | O_DIRECTORY);
  if (there || there.error().sys_errno != ENOENT) {
    if (!there) return std::unexpected(FileError(there.error(), path));
    return there;
  }
  PALMSHED_TRY_VOID(MakeAllMissing(root, owner, path, mode));
  return OpenInside(root, path, O_PATH | O_DIRECTORY);
}

Result<void> MakeOneDirectory(BorrowedFd parent, const std::string& name, const Owner& owner,
                              mode_t mode) {
  PALMSHED_TRY(const std::string unfinished, TemporaryName());
  PALMSHED_TRY_VOID(sys::MkdirAt(parent, unfinished, kUnfinishedMode));
  const auto finish = [&]() -> Result<void> {
    PALMSHED_TRY(const UniqueFd fd,
                 sys::OpenAt(parent, unfinished, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    if (owner) PALMSHED_TRY_VOID(sys::Fchown(fd.get(), *owner, *owner));
    PALMSHED_TRY_VOID(sys::Fchmod(fd.get(), mode));
    return sys::RenameNew(parent, unfinished, parent, name);
  };
  auto finished = finish();
  // The failure to report is the first one.
  if (!finished) (void)sys::UnlinkAt(parent, unfinished, AT_REMOVEDIR);
  return finished;
}

Result<std::string> TemporaryName() {
  PALMSHED_TRY(std::string digits, sys::RandomHex(16));
  return ".palmshed-" + digits;
}

}  // namespace palmshed::workspace
