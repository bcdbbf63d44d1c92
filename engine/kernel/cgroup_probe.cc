#include "kernel/cgroup_probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstddef>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "kernel/cgroup_files.h"
#include "kernel/cgroup_place.h"
#include "palmshed/error.h"

namespace palmshed::kernel {
namespace {

constexpr std::string_view kPrefix = "palmshed-probe-";
constexpr std::size_t kDigits = 16;
constexpr int kMostAttempts = 8;

/// The lock on a group; nullopt: somebody else has it, or the group is gone.
std::optional<UniqueFd> Lock(const std::string& group) {
  auto fd = sys::Open(group, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!fd || !sys::Flock(fd->get(), LOCK_EX | LOCK_NB) || !GroupFileExists(group)) {
    return std::nullopt;
  }
  return *std::move(fd);
}

}  // namespace

void RemoveDeadProbes(const CgroupHost& host, const std::string& directory) {
  auto fd = sys::Open(directory, O_RDONLY | O_DIRECTORY);
  if (!fd) return;
  auto listing = sys::Directory::Read(*std::move(fd));
  if (!listing) return;
  for (auto entry = listing->Next(); entry && *entry; entry = listing->Next()) {
    if ((*entry)->type != DT_DIR || !(*entry)->name.starts_with(kPrefix)) continue;
    const std::string group = directory + "/" + (*entry)->name;
    if (const auto lock = Lock(group)) (void)host.remove(group);
  }
}

Result<void> LookAtNewGroup(const CgroupHost& host, const std::string& directory,
                            const std::function<void(const std::string& group)>& look) {
  RemoveDeadProbes(host, directory);
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    PALMSHED_TRY(const std::string digits, sys::RandomHex(kDigits));
    std::string group = directory;
    group.append("/").append(kPrefix).append(digits);
    PALMSHED_TRY_VOID(host.make(group));
    // Another process that comes between making and locking takes it for a dead one's.
    const auto lock = Lock(group);
    if (!lock) continue;
    look(group);
    return host.remove(group);
  }
  return std::unexpected(SysError("flock", EBUSY, directory));
}

}  // namespace palmshed::kernel
