#include "kernel/cgroup.h"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "kernel/cgroup1.h"
#include "kernel/cgroup2.h"
#include "kernel/cgroup_files.h"
#include "kernel/cgroup_find.h"
#include "kernel/cgroup_place.h"
#include "kernel/cgroup_probe.h"
#include "palmshed/error.h"

namespace palmshed::kernel {
namespace {

// linux/magic.h
constexpr std::uint64_t kCgroupMagic = 0x27e0eb;
constexpr std::uint64_t kCgroup2Magic = 0x63677270;

constexpr std::chrono::milliseconds kKilledWithin{2000};

int Worth(const CgroupTree* tree) {
  if (tree == nullptr) return 0;
  const CgroupControllers found = tree->controllers();
  return (found.memory ? 8 : 0) + (found.pids ? 4 : 0) + (found.cpu_quota ? 2 : 0) +
         (found.cpu_time ? 1 : 0);
}

/// The lines of cgroup.events have "populated 0" once nothing below `directory` runs.
Result<void> AwaitEmpty(const std::string& directory) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + kKilledWithin;
  while (true) {
    // What poll(2) tells is a change since this very descriptor was read.
    PALMSHED_TRY(const UniqueFd events, sys::Open(directory + "/cgroup.events", O_RDONLY));
    std::array<char, 256> text{};
    PALMSHED_TRY(const std::size_t size,
                 sys::Read(events.get(), std::as_writable_bytes(std::span(text))));
    if (GroupKey(std::string_view(text.data(), size), "populated") == 0) return {};
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return std::unexpected(SysError("cgroup.kill", EBUSY, directory));
    PALMSHED_TRY_VOID(sys::WaitChanged(events.get(), static_cast<int>(left.count())));
  }
}

/// Ends what runs in a group, where the kernel can.
Result<void> KillIn(const std::string& directory) {
  auto killed = WriteGroupFile(directory + "/cgroup.kill", "1");
  if (!killed && killed.error().sys_errno == ENOENT) return {};
  if (!killed) return killed;
  return AwaitEmpty(directory);
}

Result<void> RemoveOne(const std::string& directory) {
  auto type = sys::FileSystemType(directory);
  if (!type && type.error().sys_errno == ENOENT) return {};
  if (!type) return std::unexpected(std::move(type.error()));
  if (*type != kCgroupMagic && *type != kCgroup2Magic) {
    return std::unexpected(SysError("rmdir", EXDEV, directory));
  }
  PALMSHED_TRY_VOID(KillIn(directory));
  return RemoveEmptyGroups(directory);
}

}  // namespace

std::unique_ptr<CgroupTree> FindCgroupTreeOn(const CgroupHost& host, NoCgroups& missing) {
  NoCgroups missing1;
  NoCgroups missing2;
  auto v2 = FindCgroup2(host, missing2);
  const bool enough = v2 != nullptr && v2->controllers().memory && v2->controllers().pids;
  auto v1 = enough ? nullptr : FindCgroup1(host, missing1);
  const bool take1 = Worth(v1.get()) > Worth(v2.get());
  // A host with controllers in v1 is not told about v2, and the other way round.
  const bool tell1 = take1 || (v2 == nullptr && FindPlace1(host, "memory"));
  missing = std::move(tell1 ? missing1 : missing2);
  return take1 ? std::move(v1) : std::move(v2);
}

Result<std::unique_ptr<CgroupTree>> FindCgroupTree(NoCgroups& missing) {
  PALMSHED_TRY(const CgroupHost host, ThisCgroupHost());
  auto tree = FindCgroupTreeOn(host, missing);
  if (tree) return tree;
  return std::unexpected(Unsupported("limits", missing.reason, missing.remedy));
}

void RemoveDeadProbes() {
  const auto host = ThisCgroupHost();
  if (!host) return;
  for (const char* controller : {"cpuacct", "cpu", "pids", "memory"}) {
    if (const auto place = FindPlace1(*host, controller)) RemoveDeadProbes(*host, place->group);
  }
  const auto place = FindPlace2(*host);
  if (!place) return;
  for (std::string at = place->group;; at = ParentOf(at)) {
    RemoveDeadProbes(*host, at);
    if (at.size() <= place->mount.size()) return;
  }
}

Result<void> RemoveCgroups(const std::vector<std::string>& directories) {
  Result<void> all;
  for (const std::string& directory : directories) {
    auto removed = RemoveOne(directory);
    if (!removed && all) all = std::move(removed);
  }
  return all;
}

}  // namespace palmshed::kernel
