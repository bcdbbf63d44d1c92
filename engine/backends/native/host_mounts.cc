#include "backends/native/host_mounts.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/native/view.h"
#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "child/step_names.h"
#include "child/wire.h"
#include "kernel/landlock.h"
#include "palmshed/error.h"
#include "palmshed/options.h"

namespace palmshed::backends::native {
namespace {

/// Of the host's machinery, with everything below.
constexpr std::array<std::string_view, 6> kSystem{"/boot", "/dev", "/etc", "/proc", "/run", "/sys"};
/// Too much of a host to be meant; what is below may be shown.
constexpr std::array<std::string_view, 11> kTooMuch{
    "/", "/bin", "/home", "/lib", "/lib64", "/opt", "/root", "/sbin", "/tmp", "/usr", "/var"};

bool IsWithin(std::string_view path, std::string_view top) {
  if (top == "/") return true;
  return path.starts_with(top) && (path.size() == top.size() || path[top.size()] == '/');
}

/// What is wrong with showing it, or nothing.
std::string_view Objection(std::string_view path, std::span<const std::string> private_paths) {
  const auto holds = [&](std::string_view top) { return IsWithin(path, top); };
  if (std::ranges::any_of(kSystem, holds)) return "is a directory of the system";
  if (std::ranges::find(kTooMuch, path) != kTooMuch.end()) return "is too much of this host";
  const auto touches = [&](const std::string& own) {
    return IsWithin(path, own) || IsWithin(own, path);
  };
  if (std::ranges::any_of(private_paths, touches)) return "holds state of the engine";
  return {};
}

Error Refused(std::size_t index, std::string_view problem) {
  return InvalidOption("mounts[" + std::to_string(index) + "].source", problem);
}

/// Another source would do; all else that may happen, such as no memory, has nothing to do with it.
bool IsOfTheSource(int sys_errno) {
  return sys_errno == ENOENT || sys_errno == ENOTDIR || sys_errno == EACCES || sys_errno == EPERM ||
         sys_errno == ENAMETOOLONG;
}

Error NotOpened(std::size_t index, const Error& error) {
  if (error.sys_errno == ELOOP) {
    Error refused = Refused(index, "must not be, or go through, a symbolic link");
    refused.remedy = "give the path that `realpath` prints";
    return refused;
  }
  if (!IsOfTheSource(error.sys_errno)) return error;
  return Refused(index, "cannot be opened: " + error.message);
}

Result<HostMount> Hold(const Mount& mount, std::size_t index,
                       std::span<const std::string> private_paths) {
  auto source = sys::OpenWithoutLinks(mount.source, O_PATH);
  if (!source) return std::unexpected(NotOpened(index, source.error()));
  struct stat status{};
  if (::fstat(source->get(), &status) != 0) return std::unexpected(SysError("fstat", errno));
  if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode)) {
    return std::unexpected(Refused(index, "must be a directory or a regular file"));
  }
  PALMSHED_TRY(std::string path, sys::PathOf(source->get()));
  const std::string_view objection = Objection(path, private_paths);
  if (!objection.empty()) return std::unexpected(Refused(index, objection));
  return HostMount{
      .mount = {.source = std::move(path), .target = mount.target, .read_only = mount.read_only},
      .source = *std::move(source),
      .directory = S_ISDIR(status.st_mode)};
}

}  // namespace

Result<std::vector<HostMount>> HoldMounts(const std::vector<Mount>& mounts,
                                          std::span<const std::string> private_paths) {
  std::vector<HostMount> held;
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    PALMSHED_TRY(auto one, Hold(mounts[i], i, private_paths));
    held.push_back(std::move(one));
  }
  return held;
}

View WithHostMounts(View view, std::span<const HostMount> mounts) {
  namespace landlock = kernel::landlock;
  constexpr std::uint64_t kReadable = landlock::kReadFile | landlock::kReadDir | landlock::kExecute;
  for (const HostMount& mount : mounts) {
    const std::uint32_t writable = mount.mount.read_only ? 0 : child::kViewWritable;
    view.host_mounts.push_back({.op = child::ViewOp::kBind,
                                .flags = child::kViewTree | child::kViewRecursive | writable,
                                .a = mount.mount.target,
                                .tree = static_cast<std::uint32_t>(view.host_mounts.size())});
    std::uint64_t access = mount.mount.read_only ? kReadable : ~std::uint64_t{0};
    if (!mount.directory) access &= landlock::kFileRights;
    access &= view.handled.fs;
    if (access != 0) view.rules.push_back({mount.mount.target, access});
  }
  return view;
}

Error ExplainHostMount(Error error) {
  if (error.op == child::StepName(child::Step::kHostMount)) {
    error.field = "mounts";
    error.remedy =
        "a file system that was mounted after the engine had made its first sandbox may be out of "
        "its sight: start another engine";
  } else if (error.op == child::StepName(child::Step::kAttachHostMounts)) {
    error.field = "mounts";
    error.remedy =
        "choose targets that exist, or that are not within a directory that the host lends";
  }
  return error;
}

}  // namespace palmshed::backends::native
