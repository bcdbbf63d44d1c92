#include "backends/native/state_paths.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <expected>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::backends::native {
namespace {

constexpr mode_t kPrivate = 0700;
constexpr mode_t kOthersMayWrite = 0022;

/// What to do about a directory that others may read.
enum class Mode : bool { kTighten, kKeep };

std::string Variable(const char* name) {
  // NOLINTNEXTLINE(misc-include-cleaner): the check does not know that <cstdlib> has it.
  const char* value = ::secure_getenv(name);
  return value == nullptr ? "" : value;
}

bool IsAbsolute(const std::string& path) { return path.starts_with('/'); }

Result<void> MakeMissing(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    auto made = sys::MkdirAt(AT_FDCWD, path.substr(0, end), kPrivate);
    // EROFS and EACCES come before EEXIST for some parents that are there: the last one decides.
    if (end != std::string::npos) continue;
    if (made || made.error().sys_errno == EEXIST) return {};
    return std::unexpected(FsError(made.error(), path));
  }
}

Error NotOurs(const std::string& path, const std::string& problem) {
  return Error{
      .code = ErrorCode::kFsError,
      .message = path + " cannot hold the state of sandboxes: " + problem,
      .remedy = "Remove " + path + ", or make it a directory of this user with mode 0700."};
}

/// Opens a directory whose last component is not a link, if it is this user's own and nobody else
/// may write to it.
Result<HostDirectory> OpenOwn(const std::string& path, uid_t uid, int flags, Mode mode) {
  auto fd = sys::Open(path, O_RDONLY | O_DIRECTORY | flags);
  if (!fd) {
    const int why = fd.error().sys_errno;
    if (why == ELOOP || why == ENOTDIR) return std::unexpected(NotOurs(path, "it is no directory"));
    return std::unexpected(FsError(fd.error(), path));
  }
  PALMSHED_TRY(const struct stat st, sys::Fstat(fd->get()));
  if (st.st_uid != uid) return std::unexpected(NotOurs(path, "it belongs to another user"));
  if ((st.st_mode & kOthersMayWrite) != 0) {
    return std::unexpected(NotOurs(path, "other users may write to it"));
  }
  if (mode == Mode::kTighten && (st.st_mode & 0777) != kPrivate) {
    PALMSHED_TRY_VOID(sys::Fchmod(fd->get(), kPrivate));
  }
  return HostDirectory{.fd = std::move(*fd), .path = path};
}

std::string Below(const std::string& parent) { return parent + "/palmshed"; }

std::string PrivateTemporary(const HostEnvironment& host) {
  return host.temporary + "/palmshed-" + std::to_string(host.uid);
}

std::string WorkspacesInTemporary(const HostEnvironment& host) {
  return PrivateTemporary(host) + "/workspaces";
}

/// `parent` is a directory of root's or of this user: a link of that name is the owner's wish.
Result<HostDirectory> MakeBelow(const std::string& parent, uid_t uid) {
  const std::string path = Below(parent);
  PALMSHED_TRY_VOID(MakeMissing(path));
  return OpenOwn(path, uid, 0, Mode::kTighten);
}

/// In the temporary directory everybody may make names, links to our own directories too.
Result<HostDirectory> OpenPrivateTemporary(const HostEnvironment& host) {
  const std::string path = PrivateTemporary(host);
  PALMSHED_TRY_VOID(MakeMissing(path));
  return OpenOwn(path, host.uid, O_NOFOLLOW, Mode::kTighten);
}

/// True for a directory that exists and is this user's: after su(1) the variable often still names
/// the runtime directory of somebody else. One that cannot be looked at for the moment is an error:
/// the engines of a user must agree.
Result<bool> IsUsable(const std::string& directory, uid_t uid) {
  if (!IsAbsolute(directory)) return false;
  auto opened = OpenOwn(directory, uid, 0, Mode::kKeep);
  if (opened) return true;
  if (opened.error().code == ErrorCode::kOverloaded) {
    return std::unexpected(std::move(opened.error()));
  }
  return false;
}

Result<HostDirectory> OpenState(const HostEnvironment& host) {
  if (host.uid == 0) return MakeBelow(host.run, 0);
  PALMSHED_TRY(const bool usable, IsUsable(host.runtime_home, host.uid));
  if (usable) return MakeBelow(host.runtime_home, host.uid);
  return OpenPrivateTemporary(host);
}

Result<HostDirectory> OpenWorkspaces(const HostEnvironment& host, const std::string& chosen) {
  if (!chosen.empty()) {
    if (!IsAbsolute(chosen)) {
      return std::unexpected(InvalidOption("workspaceRoot", "must be an absolute path"));
    }
    PALMSHED_TRY_VOID(MakeMissing(chosen));
    return OpenOwn(chosen, host.uid, 0, Mode::kKeep);
  }
  if (host.uid == 0) return MakeBelow(host.lib, 0);
  if (IsAbsolute(host.state_home)) return MakeBelow(host.state_home, host.uid);
  PALMSHED_TRY(const HostDirectory own, OpenPrivateTemporary(host));
  const std::string path = WorkspacesInTemporary(host);
  PALMSHED_TRY_VOID(MakeMissing(path));
  return OpenOwn(path, host.uid, O_NOFOLLOW, Mode::kTighten);
}

/// Where an engine keeps something when it is told nothing else.
struct DefaultPlace {
  std::string path;
  int flags = 0;  ///< O_NOFOLLOW: a link of that name may be anybody's, and no engine uses it.
};

std::vector<DefaultPlace> DefaultPlaces(const HostEnvironment& host) {
  std::vector<DefaultPlace> places{{Below(host.run)}, {Below(host.lib)}};
  if (host.uid == 0) return places;
  for (const std::string& home : {host.runtime_home, host.state_home}) {
    if (IsAbsolute(home)) places.push_back({Below(home)});
  }
  HostEnvironment elsewhere = host;
  for (const std::string& temporary : {host.temporary, HostEnvironment{}.temporary}) {
    elsewhere.temporary = temporary;
    places.push_back({PrivateTemporary(elsewhere), O_NOFOLLOW});
  }
  return places;
}

/// No directory of that name that this user could open: not there, not to be entered, no directory.
bool IsOutOfSight(int sys_errno) {
  return sys_errno == ENOENT || sys_errno == EACCES || sys_errno == ENOTDIR || sys_errno == ELOOP;
}

/// The kernel's path of what may be made only later: that of the first parent which is there, and
/// the rest as it is spelled.
Result<std::string> KernelPath(const DefaultPlace& place) {
  std::filesystem::path existing = place.path;
  std::filesystem::path rest;
  auto fd = sys::Open(existing, O_PATH | place.flags);
  while (!fd && IsOutOfSight(fd.error().sys_errno) && existing.has_relative_path()) {
    rest = rest.empty() ? existing.filename() : existing.filename() / rest;
    existing = existing.parent_path();
    fd = sys::Open(existing, O_PATH);
  }
  if (!fd) return std::unexpected(std::move(fd.error()));
  PALMSHED_TRY(std::string path, sys::PathOf(fd->get()));
  if (rest.empty()) return path;
  return (std::filesystem::path(path) / rest).lexically_normal().string();
}

}  // namespace

HostEnvironment ReadHostEnvironment() {
  HostEnvironment host{.uid = ::geteuid(),
                       .runtime_home = Variable("XDG_RUNTIME_DIR"),
                       .state_home = Variable("XDG_STATE_HOME")};
  if (std::string temporary = Variable("TMPDIR"); IsAbsolute(temporary)) {
    host.temporary = std::move(temporary);
  }
  return host;
}

Result<HostDirectories> OpenHostDirectories(const HostEnvironment& host,
                                            const std::string& workspace_root) {
  PALMSHED_TRY(HostDirectory state, OpenState(host));
  PALMSHED_TRY(HostDirectory workspaces, OpenWorkspaces(host, workspace_root));
  return HostDirectories{.state = std::move(state), .workspaces = std::move(workspaces)};
}

Result<std::vector<std::string>> PrivatePaths(const HostEnvironment& host,
                                              const HostDirectories& directories) {
  std::vector<std::string> paths;
  for (const HostDirectory* const own : {&directories.state, &directories.workspaces}) {
    PALMSHED_TRY(std::string path, sys::PathOf(own->fd.get()));
    paths.push_back(std::move(path));
  }
  for (const DefaultPlace& place : DefaultPlaces(host)) {
    PALMSHED_TRY(std::string path, KernelPath(place));
    paths.push_back(std::move(path));
  }
  return paths;
}

std::string StatePath(const HostEnvironment& host) {
  if (host.uid == 0) return Below(host.run);
  if (IsUsable(host.runtime_home, host.uid).value_or(false)) return Below(host.runtime_home);
  return PrivateTemporary(host);
}

std::string WorkspacesPath(const HostEnvironment& host, const std::string& workspace_root) {
  if (!workspace_root.empty()) return workspace_root;
  if (host.uid == 0) return Below(host.lib);
  return IsAbsolute(host.state_home) ? Below(host.state_home) : WorkspacesInTemporary(host);
}

}  // namespace palmshed::backends::native
