#include "kernel/cgroup_place.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/sys.h"
#include "kernel/cgroup_files.h"
#include "palmshed/error.h"

namespace palmshed::kernel {
namespace {

/// A line of mountinfo that mounts a hierarchy.
struct Mount {
  std::string root;  ///< The group that is at the mount point.
  std::string point;
  bool read_only = false;
  bool v2 = false;
  std::string_view options;  ///< Of the file system: on v1, its controllers.
};

/// Blanks and backslashes stand there as three octal digits.
std::string Unescape(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\' || at + 3 >= text.size()) {
      plain += text[at];
      continue;
    }
    plain += static_cast<char>((text[at + 1] - '0') * 64 + (text[at + 2] - '0') * 8 +
                               (text[at + 3] - '0'));
    at += 3;
  }
  return plain;
}

std::optional<Mount> ParseMount(std::string_view line) {
  const auto fields = Split(line, ' ');
  const auto dash = std::ranges::find(fields, "-");
  if (dash - fields.begin() < 6 || fields.end() - dash < 4) return std::nullopt;
  const std::string_view type = dash[1];
  if (type != "cgroup" && type != "cgroup2") return std::nullopt;
  return Mount{.root = Unescape(fields[3]),
               .point = Unescape(fields[4]),
               .read_only = HasWord(fields[5], "ro", ','),
               .v2 = type == "cgroup2",
               .options = dash[3]};
}

/// The path behind "ID:CONTROLLERS:" of the hierarchy that `matches`; its controllers go there.
template <class Matches>
std::optional<std::string_view> OwnPath(std::string_view self_cgroup, Matches matches) {
  for (const std::string_view line : Split(self_cgroup, '\n')) {
    const std::size_t first = line.find(':');
    if (first == line.npos) continue;
    const std::size_t second = line.find(':', first + 1);
    if (second == line.npos) continue;
    if (matches(line.substr(first + 1, second - first - 1))) return line.substr(second + 1);
  }
  return std::nullopt;
}

/// Where the group `own` is below a mount that shows the group `root`; nullopt: it is not.
std::optional<CgroupPlace> Locate(const Mount& mount, std::string_view own) {
  // "/..": outside of our cgroup namespace, from where nothing can be told.
  if (own.starts_with("/..") || mount.root.starts_with("/..")) return std::nullopt;
  std::string_view below = own;
  if (mount.root != "/") {
    if (!below.starts_with(mount.root)) return std::nullopt;
    below.remove_prefix(mount.root.size());
    if (!below.empty() && below.front() != '/') return std::nullopt;
  }
  while (below.ends_with('/')) below.remove_suffix(1);
  return CgroupPlace{.mount = mount.point,
                     .group = mount.point + std::string(below),
                     .read_only = mount.read_only};
}

template <class Wanted>
std::optional<CgroupPlace> FindAmongMounts(const CgroupHost& host, std::string_view own,
                                           Wanted wanted) {
  std::optional<CgroupPlace> found;
  for (const std::string_view line : Split(host.mountinfo, '\n')) {
    const auto mount = ParseMount(line);
    if (!mount || !wanted(*mount)) continue;
    auto place = Locate(*mount, own);
    // A writable mount of a hierarchy that is also mounted read-only, as some containers have it.
    if (place && (!found || (found->read_only && !place->read_only))) found = std::move(place);
  }
  return found;
}

}  // namespace

Result<CgroupHost> ThisCgroupHost() {
  PALMSHED_TRY(std::string self_cgroup, sys::ReadFile("/proc/self/cgroup"));
  PALMSHED_TRY(std::string mountinfo, sys::ReadFile("/proc/self/mountinfo"));
  return CgroupHost{
      .self_cgroup = std::move(self_cgroup),
      .mountinfo = std::move(mountinfo),
      .self = ::getpid(),
      .root = ::geteuid() == 0,
      .make = [](const std::string& path) { return sys::MkdirAt(AT_FDCWD, path, 0755); },
      .remove = [](const std::string& path) { return RemoveEmptyGroups(path); },
  };
}

std::optional<CgroupPlace> FindPlace1(const CgroupHost& host, std::string_view controller) {
  const auto own = OwnPath(host.self_cgroup, [&](std::string_view controllers) {
    return HasWord(controllers, controller, ',');
  });
  if (!own) return std::nullopt;
  return FindAmongMounts(host, *own, [&](const Mount& mount) {
    return !mount.v2 && HasWord(mount.options, controller, ',');
  });
}

std::optional<CgroupPlace> FindPlace2(const CgroupHost& host) {
  const auto own =
      OwnPath(host.self_cgroup, [](std::string_view controllers) { return controllers.empty(); });
  if (!own) return std::nullopt;
  return FindAmongMounts(host, *own, [](const Mount& mount) { return mount.v2; });
}

}  // namespace palmshed::kernel
