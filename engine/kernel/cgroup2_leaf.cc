#include "kernel/cgroup2_leaf.h"

#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/faults.h"
#include "base/result.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "kernel/cgroup.h"
#include "kernel/cgroup_files.h"
#include "palmshed/error.h"
#include "palmshed/units.h"

namespace palmshed::kernel {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr std::uint64_t kPeriodMicroseconds = 100'000;  ///< The kernel's own default.
constexpr std::uint64_t kShortestQuota = 1000;          ///< The kernel refuses less.
constexpr Bytes kNearlyNothing{1U << 20};

std::uint64_t Since(std::uint64_t now, std::uint64_t then) { return now - std::min(now, then); }

class Leaf2 final : public CgroupLeaf {
 public:
  Leaf2(std::string directory, const CgroupControllers& controllers)
      : directory_(std::move(directory)),
        controllers_(controllers),
        swap_(GroupFileExists(At("memory.swap.max"))),
        cpu_stat_(At("cpu.stat")),
        memory_events_(At("memory.events")),
        pids_events_(At("pids.events")),
        charged_(At("memory.current")) {}
  ~Leaf2() override;
  Leaf2(const Leaf2&) = delete;
  Leaf2& operator=(const Leaf2&) = delete;

  /// What holds whatever the limits are.
  Result<void> SetUp() const;
  Result<void> Attach(pid_t pid) override;
  Result<void> Limit(const GroupLimits& limits) override;
  Result<void> Begin() override;
  Result<GroupUsage> Usage() override;
  Result<nanoseconds> CpuTime() const override;
  Result<std::optional<Bytes>> AnonymousMemory() const override;
  BorrowedFd OomEvent() const override { return -1; }  // memory.oom.group
  void Rest() override;
  void Kill() override;
  bool Reusable() const override;
  bool Renew() override;

 private:
  Result<void> StartCounting();
  std::string At(const char* file) const { return directory_ + "/" + file; }
  Result<void> LimitMemory(Bytes limit) const;
  Result<void> LimitQuota(double quota) const;
  // Counters since the group was made.
  Result<GroupUsage> ReadAllCounters() const;
  Result<void> ReadCpu(GroupUsage& usage) const;
  Result<void> ReadMemory(GroupUsage& usage) const;
  Result<std::uint64_t> ReadPidsRefused() const;
  bool Empty() const;
  bool HardlyCharged() const;

  const std::string directory_;
  const CgroupControllers controllers_;
  const bool swap_;  ///< Swap can be limited.
  GroupFile cpu_stat_;
  GroupFile memory_events_;
  GroupFile pids_events_;
  GroupFile charged_;
  GroupLimits in_force_{};
  bool unknown_limits_ = false;                   ///< Setting them failed half-way.
  GroupUsage begin_{.cpu_time = nanoseconds(0)};  ///< Counters at Begin, or of StartCounting.
  bool counted_ = false;                          ///< `begin_` is of StartCounting.
};

Leaf2::~Leaf2() {
  Kill();
  // What still runs is left to whoever removes the group above.
  (void)RemoveEmptyGroups(directory_);
}

Result<void> Leaf2::SetUp() const {
  if (!controllers_.memory || !GroupFileExists(At("memory.oom.group"))) return {};
  // Linux 4.19. A process that is left of a program whose parts were killed is of no use.
  return WriteGroupFile(At("memory.oom.group"), "1");
}

Result<void> Leaf2::Attach(pid_t pid) {
  // Zero would be this very process.
  if (pid <= 0) return std::unexpected(SysError("cgroup.procs", ESRCH));
  // The last limit may leave a process that only waits no page to wait with.
  if (in_force_.memory < kNearlyNothing) PALMSHED_TRY_VOID(Limit(in_force_.WithoutMemory()));
  PALMSHED_TRY_VOID(WriteGroupFile(At("cgroup.procs"), std::to_string(pid)));
  return StartCounting();
}

/// Now rather than in Begin and Usage, which somebody waits for: until then the child only waits.
Result<void> Leaf2::StartCounting() {
  (void)cpu_stat_.Hold();
  if (controllers_.memory) {
    (void)memory_events_.Hold();
    (void)charged_.Hold();
  }
  if (in_force_.pids != 0)
    (void)pids_events_.Hold();  // The next limits will most likely be the same.
  PALMSHED_TRY(begin_, ReadAllCounters());
  counted_ = true;
  return {};
}

bool Leaf2::Renew() { return !unknown_limits_ && HardlyCharged() && StartCounting().has_value(); }

void Leaf2::Rest() {
  cpu_stat_.Release();
  memory_events_.Release();
  pids_events_.Release();
  charged_.Release();
}

Result<void> Leaf2::Limit(const GroupLimits& limits) {
  unknown_limits_ = true;
  if (limits.memory != in_force_.memory) {
    PALMSHED_TRY_VOID(LimitMemory(limits.memory));
    in_force_.memory = limits.memory;
  }
  if (limits.pids != in_force_.pids) {
    PALMSHED_TRY_VOID(
        WriteGroupFile(At("pids.max"), limits.pids == 0 ? "max" : std::to_string(limits.pids)));
    in_force_.pids = limits.pids;
  }
  if (limits.cpu_quota != in_force_.cpu_quota) {
    PALMSHED_TRY_VOID(LimitQuota(limits.cpu_quota));
    in_force_.cpu_quota = limits.cpu_quota;
  }
  unknown_limits_ = false;
  return {};
}

Result<void> Leaf2::LimitMemory(Bytes limit) const {
  const bool none = limit == Bytes{};
  if (swap_) PALMSHED_TRY_VOID(WriteGroupFile(At("memory.swap.max"), none ? "max" : "0"));
  return WriteGroupFile(At("memory.max"), none ? "max" : std::to_string(Count(limit)));
}

Result<void> Leaf2::LimitQuota(double quota) const {
  const std::string period = " " + std::to_string(kPeriodMicroseconds);
  if (quota == 0) return WriteGroupFile(At("cpu.max"), "max" + period);
  const auto share = std::max(
      kShortestQuota, static_cast<std::uint64_t>(quota * static_cast<double>(kPeriodMicroseconds)));
  return WriteGroupFile(At("cpu.max"), std::to_string(share) + period);
}

Result<void> Leaf2::Begin() {
  if (!std::exchange(counted_, false)) {
    PALMSHED_TRY(begin_, ReadAllCounters());
  } else {
    PALMSHED_TRY_VOID(cpu_stat_.Read());  // Somebody may have removed the group since then.
  }
  return {};
}

Result<void> Leaf2::ReadCpu(GroupUsage& usage) const {
  PALMSHED_TRY(const std::string text, cpu_stat_.Read());
  usage.cpu_time = microseconds(GroupKey(text, "usage_usec"));
  if (controllers_.cpu_quota) usage.throttled = microseconds(GroupKey(text, "throttled_usec"));
  usage.throttled_periods = GroupKey(text, "nr_throttled");
  return {};
}

Result<void> Leaf2::ReadMemory(GroupUsage& usage) const {
  PALMSHED_TRY(const std::string text, memory_events_.Read());
  usage.memory_failures = GroupKey(text, "max");
  // Counted for the group whose own limit was met; its processes may be killed for others' sake.
  usage.oom = GroupKey(text, "oom");
  usage.oom_kills = GroupKey(text, "oom_kill");
  return {};
}

Result<std::uint64_t> Leaf2::ReadPidsRefused() const { return pids_events_.ReadKey("max"); }

Result<GroupUsage> Leaf2::ReadAllCounters() const {
  GroupUsage usage;
  PALMSHED_TRY_VOID(ReadCpu(usage));
  if (controllers_.memory) PALMSHED_TRY_VOID(ReadMemory(usage));
  if (controllers_.pids) {
    PALMSHED_TRY(usage.pids_refused, ReadPidsRefused());
  }
  return usage;
}

// A caller waits for this: no file is opened that can have nothing to tell.
Result<GroupUsage> Leaf2::Usage() {
  GroupUsage usage;
  PALMSHED_TRY_VOID(ReadCpu(usage));
  *usage.cpu_time -= *begin_.cpu_time;
  if (usage.throttled) *usage.throttled -= begin_.throttled.value_or(nanoseconds(0));
  usage.throttled_periods = Since(usage.throttled_periods, begin_.throttled_periods);
  if (controllers_.memory) PALMSHED_TRY_VOID(ReadMemory(usage));
  usage.memory_failures = Since(usage.memory_failures, begin_.memory_failures);
  usage.oom = Since(usage.oom, begin_.oom);
  usage.oom_kills = Since(usage.oom_kills, begin_.oom_kills);
  if (in_force_.pids != 0) {
    PALMSHED_TRY(const std::uint64_t refused, ReadPidsRefused());
    usage.pids_refused = Since(refused, begin_.pids_refused);
  }
  return usage;
}

Result<nanoseconds> Leaf2::CpuTime() const {
  PALMSHED_TRY(const std::uint64_t used, cpu_stat_.ReadKey("usage_usec"));
  return microseconds(used) - begin_.cpu_time.value_or(nanoseconds(0));
}

Result<std::optional<Bytes>> Leaf2::AnonymousMemory() const {
  if (!controllers_.memory) return std::optional<Bytes>();
  PALMSHED_TRY(const std::string stat, sys::ReadFile(At("memory.stat")));
  const char* const files = Faulty("page-cache-counts") ? "file" : "shmem";
  std::uint64_t bytes = GroupKey(stat, "anon") + GroupKey(stat, files);
  if (!swap_) return Bytes{bytes};
  PALMSHED_TRY(const std::uint64_t swapped, ReadGroupNumber(At("memory.swap.current")));
  bytes += swapped;
  return Bytes{bytes};
}

void Leaf2::Kill() {
  // Linux 5.14; before, init has to. Nothing to be done about a failure, for the same reason.
  (void)WriteGroupFile(At("cgroup.kill"), "1");
}

bool Leaf2::Empty() const {
  // A process that nobody has waited for yet is no longer in cgroup.procs, but takes a number.
  if (controllers_.pids) {
    const auto count = ReadGroupNumber(At("pids.current"));
    return count && *count == 0;
  }
  const auto processes = sys::ReadFile(At("cgroup.procs"));
  return processes && processes->empty();
}

bool Leaf2::Reusable() const { return !unknown_limits_ && Empty() && HardlyCharged(); }

bool Leaf2::HardlyCharged() const {
  if (!controllers_.memory) return true;
  const auto charged = charged_.ReadNumber();
  if (!charged) return false;
  if (*charged < Count(kNearlyNothing)) return true;
  const auto stat = sys::ReadFile(At("memory.stat"));
  if (!stat) return false;
  // tmpfs is counted among files, but cannot be given back.
  const std::uint64_t spare = Since(GroupKey(*stat, "file"), GroupKey(*stat, "shmem")) +
                              GroupKey(*stat, "slab_reclaimable");
  return Since(*charged, spare) < Count(kNearlyNothing);
}

}  // namespace

Result<std::unique_ptr<CgroupLeaf>> MakeLeaf2(std::string directory,
                                              const CgroupControllers& controllers) {
  auto leaf = std::make_unique<Leaf2>(std::move(directory), controllers);
  PALMSHED_TRY_VOID(leaf->SetUp());
  return leaf;
}

}  // namespace palmshed::kernel
