#include "backends/native/surroundings.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <array>
#include <cstddef>
#include <ios>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "backends/backend.h"
#include "backends/native/state_paths.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "child/wire.h"
#include "palmshed/options.h"

namespace palmshed::backends::native {
namespace {

constexpr char kAbsent[] = "absent";

/// Each of them allows or refuses something that a sandbox is made with, or that measures it.
constexpr std::array kSettings = {
    "/proc/sys/kernel/apparmor_restrict_unprivileged_unconfined",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "/proc/sys/kernel/io_uring_disabled",
    "/proc/sys/kernel/perf_event_paranoid",
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/kernel/yama/ptrace_scope",
    "/proc/sys/user/max_cgroup_namespaces",
    "/proc/sys/user/max_ipc_namespaces",
    "/proc/sys/user/max_mnt_namespaces",
    "/proc/sys/user/max_net_namespaces",
    "/proc/sys/user/max_pid_namespaces",
    "/proc/sys/user/max_user_namespaces",
    "/proc/sys/user/max_uts_namespaces",
    "/proc/sys/vm/memfd_noexec",
    "/proc/sys/vm/overcommit_memory",
};

constexpr std::array kThread = {
    "/proc/thread-self/attr/current", "/proc/thread-self/cgroup",  "/proc/thread-self/gid_map",
    "/proc/thread-self/limits",       "/proc/thread-self/uid_map",
};

constexpr std::array kNamespaces = {
    "cgroup", "ipc", "mnt", "net", "pid", "pid_for_children", "user", "uts",
};

/// Programs, devices and files that the backend uses where they are.
constexpr std::array kFiles = {
    "/dev/loop-control", "/etc/group",          "/etc/passwd",
    "/etc/subgid",       "/etc/subuid",         "/sbin/mkfs.ext4",
    child::kNewgidmap,   "/usr/sbin/mkfs.ext4", "/usr/local/sbin/mkfs.ext4",
};

std::string ContentOf(const std::string& path) {
  auto content = sys::ReadFile(path);
  return content ? *std::move(content) : kAbsent;
}

std::string NamespaceOf(const std::string& name) {
  auto target = sys::ReadlinkAt(AT_FDCWD, "/proc/thread-self/ns/" + name);
  return target ? *std::move(target) : kAbsent;
}

/// Enough to notice that somebody has changed it.
std::string StateOf(const std::string& path) {
  const auto st = sys::FstatAt(AT_FDCWD, path, 0);
  if (!st) return kAbsent;
  std::ostringstream text;
  text << std::oct << st->st_mode << std::dec << ' ' << st->st_uid << ':' << st->st_gid << ' '
       << st->st_size << ' ' << st->st_mtim.tv_sec << '.' << st->st_mtim.tv_nsec;
  return text.str();
}

std::string Kernel() {
  utsname name{};
  if (::uname(&name) != 0) return kAbsent;
  return std::string(name.release) + " " + name.version + " " + name.machine;
}

/// The mount that a directory is on, or will be once it is made.
std::string MountOf(std::string path) {
  auto fd = sys::Open(path, O_PATH | O_DIRECTORY);
  while (!fd && path.find_last_of('/') != path.npos && path.size() > 1) {
    path.resize(path.find_last_of('/'));
    if (path.empty()) path = "/";
    fd = sys::Open(path, O_PATH | O_DIRECTORY);
  }
  if (!fd) return kAbsent;
  const auto st = sys::StatxAt(fd->get(), "");
  const auto space = sys::Fstatvfs(fd->get());
  if (!st || !space) return kAbsent;
  std::ostringstream text;
  text << st->stx_dev_major << ':' << st->stx_dev_minor << ' ' << st->stx_mnt_id << ' '
       << space->f_flag;
  return text.str();
}

bool Matters(std::string_view path, std::string_view kind) {
  const auto below = [path](std::string_view top) {
    return path.starts_with(top) && (path.size() == top.size() || path[top.size()] == '/');
  };
  return path == "/" || below("/proc") || below("/sys") || below("/dev") ||
         kind.starts_with("cgroup");
}

/// The lines of a text one after another.
template <class Each>
void ForEachLine(std::string_view text, const Each& each) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    each(text.substr(0, end));
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
  }
}

bool IsZero(const Facts& facts, std::string_view name) {
  const auto found = facts.find(name);
  return found != facts.end() && found->second.find_first_not_of(" \t") != std::string::npos &&
         found->second.find_first_not_of(" \t0") == std::string::npos;
}

}  // namespace

std::optional<Facts> FactsOfStatus(std::string_view status) {
  constexpr std::array<std::string_view, 10> kFields = {"Uid",        "Gid",    "Groups", "CapInh",
                                                        "CapPrm",     "CapEff", "CapBnd", "CapAmb",
                                                        "NoNewPrivs", "Seccomp"};
  Facts facts;
  ForEachLine(status, [&](std::string_view line) {
    const std::size_t colon = line.find(':');
    if (colon == line.npos) return;
    for (const std::string_view field : kFields) {
      if (line.substr(0, colon) == field) facts.emplace(field, line.substr(colon + 1));
    }
  });
  const bool known =
      facts.size() == kFields.size() && IsZero(facts, "NoNewPrivs") && IsZero(facts, "Seccomp");
  return known ? std::optional(std::move(facts)) : std::nullopt;
}

std::string MountsThatMatter(std::string_view mountinfo) {
  std::string lines;
  ForEachLine(mountinfo, [&](std::string_view line) {
    std::istringstream words{std::string(line)};
    std::string path;
    for (int field = 0; field < 5; ++field) words >> path;
    const std::size_t separator = line.find(" - ");
    const std::string_view kind = separator == line.npos ? "" : line.substr(separator + 3);
    if (Matters(path, kind)) lines.append(line).append("\n");
  });
  return lines;
}

std::string Join(const Facts& facts) {
  std::string text;
  for (const auto& [name, value] : facts) {
    text.append(name).append(" ").append(std::to_string(value.size())).append("\n");
    text.append(value).append("\n");
  }
  return text;
}

std::optional<Surroundings> SurveyHost(const HostEnvironment& host, const EngineOptions& options) {
  std::optional<Facts> facts = FactsOfStatus(ContentOf("/proc/thread-self/status"));
  const std::string boot = ContentOf("/proc/sys/kernel/random/boot_id");
  const std::string mountinfo = ContentOf("/proc/thread-self/mountinfo");
  if (!facts || boot == kAbsent || mountinfo == kAbsent) return std::nullopt;
  facts->emplace("boot", boot);
  facts->emplace("kernel", Kernel());
  facts->emplace("lsm", ContentOf("/sys/kernel/security/lsm"));
  facts->emplace("mounts", MountsThatMatter(mountinfo));
  facts->emplace("workspace root", options.workspace_root);
  facts->emplace("workspaces", MountOf(WorkspacesPath(host, options.workspace_root)));
  for (const char* path : kSettings) facts->emplace(path, ContentOf(path));
  for (const char* path : kThread) facts->emplace(path, ContentOf(path));
  for (const char* path : kFiles) facts->emplace(path, StateOf(path));
  for (const char* name : kNamespaces) facts->emplace(name, NamespaceOf(name));
  return Surroundings{.facts = Join(*facts), .place = StatePath(host)};
}

}  // namespace palmshed::backends::native
