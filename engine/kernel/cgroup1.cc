#include "kernel/cgroup1.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kernel/cgroup.h"
#include "kernel/cgroup1_leaf.h"
#include "kernel/cgroup_files.h"
#include "kernel/cgroup_place.h"
#include "kernel/cgroup_probe.h"
#include "palmshed/error.h"

namespace palmshed::kernel {
namespace {

/// Makes a group's directories, or none of them.
Result<void> MakeAll(const CgroupHost& host, const Group1& group) {
  std::vector<std::string> made;
  for (const std::string& directory : group.Directories()) {
    auto result = host.make(directory);
    if (result) {
      made.push_back(directory);
      continue;
    }
    for (const std::string& undone : made) (void)host.remove(undone);
    if (result.error().sys_errno != EEXIST) return result;
    return std::unexpected(SysError(ErrorCode::kConflict, "mkdir", EEXIST, directory));
  }
  return {};
}

class CgroupGroup1 final : public CgroupGroup {
 public:
  CgroupGroup1(CgroupHost host, Group1 group, std::shared_ptr<OomCount> above, Swap swap)
      : host_(std::move(host)), group_(std::move(group)), above_(std::move(above)), swap_(swap) {}
  ~CgroupGroup1() override {
    for (const std::string& directory : group_.Directories()) (void)host_.remove(directory);
  }
  CgroupGroup1(const CgroupGroup1&) = delete;
  CgroupGroup1& operator=(const CgroupGroup1&) = delete;

  void SetWeight(CpuWeight weight) override {
    if (group_.cpu.empty()) return;
    const char* const shares = weight == CpuWeight::kTenth ? "102" : "1024";
    (void)WriteGroupFile(group_.cpu + "/cpu.shares", shares);
  }
  Result<std::unique_ptr<CgroupLeaf>> MakeLeaf() override {
    Group1 leaf = group_.Below(std::to_string(++leaves_));
    auto made = MakeAll(host_, leaf);
    if (!made && made.error().sys_errno == ENOENT) {
      // Somebody has removed the group while nothing was in it.
      for (const std::string& directory : group_.Directories()) (void)host_.make(directory);
      made = MakeAll(host_, leaf);
    }
    if (!made) return std::unexpected(std::move(made.error()));
    return MakeLeaf1(std::move(leaf), above_, swap_);
  }

 private:
  const CgroupHost host_;
  const Group1 group_;
  const std::shared_ptr<OomCount> above_;  ///< Shared with the tree and each leaf.
  const Swap swap_;
  std::atomic<std::uint64_t> leaves_ = 0;
};

class CgroupTree1 final : public CgroupTree {
 public:
  CgroupTree1(CgroupHost host, Group1 top, std::shared_ptr<OomCount> above, Swap swap)
      : host_(std::move(host)), top_(std::move(top)), above_(std::move(above)), swap_(swap) {}

  CgroupControllers controllers() const override {
    return {.memory = !top_.memory.empty(),
            .pids = !top_.pids.empty(),
            .cpu_quota = !top_.cpu.empty(),
            .cpu_time = !top_.cpuacct.empty()};
  }
  std::string name() const override { return "cgroup v1"; }
  std::vector<std::string> DirectoriesOf(const std::string& name) const override {
    return top_.Below(name).Directories();
  }
  Result<std::unique_ptr<CgroupGroup>> MakeGroup(const std::string& name) override {
    Group1 group = top_.Below(name);
    PALMSHED_TRY_VOID(MakeAll(host_, group));
    return std::make_unique<CgroupGroup1>(host_, std::move(group), above_, swap_);
  }

 private:
  const CgroupHost host_;
  const Group1 top_;
  const std::shared_ptr<OomCount> above_;
  const Swap swap_;
};

std::string Remedy(const CgroupHost& host, const CgroupPlace* place) {
  if (!host.root) {
    return "Run as root, or boot with systemd.unified_cgroup_hierarchy=1: an ordinary user is "
           "given groups in cgroup v2 only.";
  }
  if (place == nullptr) return "mount -t cgroup2 cgroup2 /sys/fs/cgroup";
  return "mount -o remount,rw " + place->mount +
         " (under Docker: --privileged, or -v /sys/fs/cgroup:/sys/fs/cgroup:rw)";
}

/// Finds, controller by controller, what can be used. The last trouble is the one that is told.
class Search {
 public:
  Search(const CgroupHost& host, NoCgroups& missing) : host_(host), missing_(missing) {}

  /// The directory of our own group in the controller's hierarchy, if groups made there have
  /// `files`; else empty.
  std::string Usable(std::string_view controller, std::vector<std::string> files) {
    const auto place = FindPlace1(host_, controller);
    if (place) return Tried(*place, std::move(files));
    Miss("no cgroup hierarchy with the controller " + std::string(controller) + " is mounted",
         nullptr);
    return {};
  }
  /// The same in the hierarchy of cgroup v2, which is worth having but not missed.
  std::string UsableUnified() {
    const auto place = FindPlace2(host_);
    if (!place) return {};
    return ProbeGroup(*place, {"cgroup.kill", "cgroup.procs"}) ? place->group : std::string();
  }
  /// Counts what the limits around us do; without that, memory has to be given up.
  std::shared_ptr<OomCount> Above(std::string& memory) {
    if (memory.empty()) return nullptr;
    auto count = OomCount::Of(memory);
    if (count) return std::move(*count);
    Miss("events of " + memory + " cannot be had: " + count.error().message, nullptr);
    memory.clear();
    return nullptr;
  }

 private:
  std::string Tried(const CgroupPlace& place, std::vector<std::string> files) {
    files.emplace_back("cgroup.procs");
    auto probed = ProbeGroup(place, files);
    if (probed) return place.group;
    Miss("no group can be made in " + place.group + ": " + probed.error().message, &place);
    return {};
  }

  /// Makes a group, looks for its files and removes it again.
  Result<void> ProbeGroup(const CgroupPlace& place, const std::vector<std::string>& files) const {
    std::string absent;
    PALMSHED_TRY_VOID(LookAtNewGroup(host_, place.group, [&](const std::string& group) {
      const auto found = std::ranges::find_if(
          files, [&](const std::string& file) { return !GroupFileExists(group + "/" + file); });
      if (found != files.end()) absent = group + "/" + *found;
    }));
    if (absent.empty()) return {};
    return std::unexpected(SysError("stat", ENOENT, absent));
  }

  void Miss(std::string reason, const CgroupPlace* place) {
    missing_ = {.reason = std::move(reason), .remedy = Remedy(host_, place)};
  }

  const CgroupHost& host_;
  NoCgroups& missing_;
};

}  // namespace

std::unique_ptr<CgroupTree> FindCgroup1(const CgroupHost& host, NoCgroups& missing) {
  Search search(host, missing);
  Group1 top;
  top.cpuacct = search.Usable("cpuacct", {"cpuacct.usage"});
  top.cpu = search.Usable("cpu", {"cpu.cfs_quota_us", "cpu.stat"});
  top.pids = search.Usable("pids", {"pids.max", "pids.current"});
  top.memory = search.Usable("memory", {"memory.limit_in_bytes", "memory.oom_control",
                                        "memory.failcnt", "cgroup.event_control"});
  auto above = search.Above(top.memory);
  if (top.Directories().empty()) return nullptr;
  top.unified = search.UsableUnified();
  const bool counts_swap =
      !top.memory.empty() && GroupFileExists(top.memory + "/memory.memsw.limit_in_bytes");
  return std::make_unique<CgroupTree1>(host, std::move(top), std::move(above),
                                       counts_swap ? Swap::kCounted : Swap::kNotCounted);
}

}  // namespace palmshed::kernel
