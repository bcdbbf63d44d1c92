#include "kernel/cgroup1_leaf.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

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

using std::chrono::nanoseconds;

constexpr std::uint64_t kPeriodMicroseconds = 100'000;  ///< The kernel's own default.
constexpr std::uint64_t kShortestQuota = 1000;          ///< The kernel refuses less.
constexpr Bytes kNearlyNothing{1U << 20};

GroupFile OomControlOf(const std::string& group) {
  return GroupFile(group + "/memory.oom_control");
}

/// An eventfd that tells that memory ran out in a group. Its file is held from here on.
Result<UniqueFd> WatchOom(const std::string& group, GroupFile& oom_control) {
  PALMSHED_TRY(UniqueFd event, sys::Eventfd());
  PALMSHED_TRY(const BorrowedFd file, oom_control.Hold());
  PALMSHED_TRY_VOID(WriteGroupFile(group + "/cgroup.event_control",
                                   std::to_string(event.get()) + " " + std::to_string(file)));
  return event;
}

/// How often an eventfd has risen since it was asked last.
std::uint64_t Drain(BorrowedFd event) {
  if (event < 0) return 0;
  std::uint64_t risen = 0;
  // EAGAIN: not at all.
  (void)sys::Read(event, std::as_writable_bytes(std::span(&risen, 1)));
  return risen;
}

std::uint64_t PageSize() { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

std::uint64_t Since(std::uint64_t now, std::uint64_t then) { return now - std::min(now, then); }

class Leaf1 final : public CgroupLeaf {
 public:
  Leaf1(Group1 leaf, std::shared_ptr<OomCount> above, Swap swap)
      : at_(std::move(leaf)),
        above_(std::move(above)),
        swap_(swap),
        oom_control_(OomControlOf(at_.memory)),
        cpu_time_(at_.cpuacct + "/cpuacct.usage"),
        pids_events_(at_.pids + "/pids.events"),
        cpu_stat_(at_.cpu + "/cpu.stat"),
        charged_(at_.memory + "/memory.usage_in_bytes"),
        failures_(at_.memory + "/memory.failcnt") {}
  ~Leaf1() override;
  Leaf1(const Leaf1&) = delete;
  Leaf1& operator=(const Leaf1&) = delete;

  Result<void> Attach(pid_t pid) override;
  Result<void> Limit(const GroupLimits& limits) override;
  Result<void> Begin() override;
  Result<GroupUsage> Usage() override;
  Result<nanoseconds> CpuTime() const override;
  Result<std::optional<Bytes>> AnonymousMemory() const override;
  BorrowedFd OomEvent() const override { return oom_event_.get(); }
  void Rest() override;
  void Kill() override;
  bool Reusable() const override;
  bool Renew() override;

 private:
  void HoldFiles();
  Result<void> StartCounting();
  void CountOom();
  Result<void> LimitMemory(Bytes limit);
  Result<void> LimitQuota(double quota) const;
  Result<void> MemoryUsage(GroupUsage& usage);
  // Counters since the group was made.
  Result<void> CheckPresence() const;
  Result<GroupUsage> ReadAllCounters() const;
  Result<std::uint64_t> ReadOomKills() const;
  Result<std::uint64_t> ReadFailures() const;
  Result<std::uint64_t> ReadPidsRefused() const;
  Result<void> ReadThrottled(GroupUsage& usage) const;
  Result<nanoseconds> ReadCpuTime() const;
  bool Empty() const;
  bool HardlyCharged() const;

  const Group1 at_;
  const std::shared_ptr<OomCount> above_;
  const Swap swap_;
  GroupFile oom_control_;
  GroupFile cpu_time_;
  GroupFile pids_events_;
  GroupFile cpu_stat_;
  GroupFile charged_;
  GroupFile failures_;
  GroupLimits in_force_{};
  bool unknown_limits_ = false;  ///< Setting them failed half-way.
  GroupUsage begin_{};           ///< Counters at Begin, or when the child came to wait.
  bool counted_ = false;         ///< `begin_` is of StartCounting.
  UniqueFd oom_event_{};         ///< With a memory limit, until Rest.
  std::uint64_t oom_ = 0;
  std::uint64_t oom_above_begin_ = 0;
};

Leaf1::~Leaf1() {
  Kill();
  // What still runs is left to whoever removes the group above.
  for (const std::string& directory : at_.Directories()) (void)RemoveEmptyGroups(directory);
}

Result<void> Leaf1::Attach(pid_t pid) {
  // Zero would be this very process.
  if (pid <= 0) return std::unexpected(SysError("cgroup.procs", ESRCH));
  // The last limit may leave a process that only waits no page to wait with.
  if (in_force_.memory < kNearlyNothing) PALMSHED_TRY_VOID(Limit(in_force_.WithoutMemory()));
  const std::string text = std::to_string(pid);
  for (const std::string& directory : at_.Directories()) {
    PALMSHED_TRY_VOID(WriteGroupFile(directory + "/cgroup.procs", text));
  }
  return StartCounting();
}

/// Now rather than in Begin and Usage, which somebody waits for: until then the child only waits.
Result<void> Leaf1::StartCounting() {
  HoldFiles();
  PALMSHED_TRY(begin_, ReadAllCounters());
  CountOom();
  counted_ = true;
  return {};
}

/// From here on. What a limit above has told until now told both.
void Leaf1::CountOom() {
  oom_ = 0;
  if (!oom_event_.valid()) return;
  oom_above_begin_ = above_->Total();
  (void)Drain(oom_event_.get());
}

bool Leaf1::Renew() { return !unknown_limits_ && HardlyCharged() && StartCounting().has_value(); }

/// Those that are always asked, and those that limits like the last ones need: the next execution
/// will most likely have the same.
void Leaf1::HoldFiles() {
  if (!at_.cpuacct.empty()) (void)cpu_time_.Hold();
  if (!at_.memory.empty()) {
    for (GroupFile* file : {&oom_control_, &charged_, &failures_}) (void)file->Hold();
  }
  if (in_force_.pids != 0) (void)pids_events_.Hold();
  if (in_force_.cpu_quota != 0) (void)cpu_stat_.Hold();
  if (in_force_.memory == Bytes{} || oom_event_.valid()) return;
  if (auto event = WatchOom(at_.memory, oom_control_)) oom_event_ = *std::move(event);
}

void Leaf1::Rest() {
  oom_event_.reset();
  oom_control_.Release();
  cpu_time_.Release();
  pids_events_.Release();
  cpu_stat_.Release();
  charged_.Release();
  failures_.Release();
}

Result<void> Leaf1::Limit(const GroupLimits& limits) {
  unknown_limits_ = true;
  if (limits.memory != in_force_.memory) {
    PALMSHED_TRY_VOID(LimitMemory(limits.memory));
    in_force_.memory = limits.memory;
  }
  if (limits.pids != in_force_.pids) {
    PALMSHED_TRY_VOID(WriteGroupFile(at_.pids + "/pids.max",
                                     limits.pids == 0 ? "max" : std::to_string(limits.pids)));
    in_force_.pids = limits.pids;
  }
  if (limits.cpu_quota != in_force_.cpu_quota) {
    PALMSHED_TRY_VOID(LimitQuota(limits.cpu_quota));
    in_force_.cpu_quota = limits.cpu_quota;
  }
  unknown_limits_ = false;
  return {};
}

Result<void> Leaf1::LimitMemory(Bytes limit) {
  const std::string memory_file = at_.memory + "/memory.limit_in_bytes";
  const std::string memory = limit == Bytes{} ? "-1" : std::to_string(Count(limit));
  if (swap_ == Swap::kNotCounted) {
    PALMSHED_TRY_VOID(WriteGroupFile(at_.memory + "/memory.swappiness", "0"));
    return WriteGroupFile(memory_file, memory);
  }
  // A page more for both together: no more than that is ever swapped out, yet it is the limit of
  // memory that is met first. The failures of the other are not counted from Linux 6.15 on.
  const std::string both_file = at_.memory + "/memory.memsw.limit_in_bytes";
  const std::string both = limit == Bytes{} ? "-1" : std::to_string(Count(limit) + PageSize());
  // Memory alone may never have more than both.
  const bool more = limit == Bytes{} || (in_force_.memory != Bytes{} && limit > in_force_.memory);
  if (more) PALMSHED_TRY_VOID(WriteGroupFile(both_file, both));
  PALMSHED_TRY_VOID(WriteGroupFile(memory_file, memory));
  return more ? Result<void>() : WriteGroupFile(both_file, both);
}

Result<void> Leaf1::LimitQuota(double quota) const {
  const std::string file = at_.cpu + "/cpu.cfs_quota_us";
  if (quota == 0) return WriteGroupFile(file, "-1");
  const auto microseconds = std::max(
      kShortestQuota, static_cast<std::uint64_t>(quota * static_cast<double>(kPeriodMicroseconds)));
  auto written = WriteGroupFile(file, std::to_string(microseconds));
  // EINVAL: a group above is held to less already, and that holds here too.
  if (!written && written.error().sys_errno == EINVAL) return WriteGroupFile(file, "-1");
  return written;
}

Result<void> Leaf1::Begin() {
  if (!std::exchange(counted_, false)) {
    PALMSHED_TRY(begin_, ReadAllCounters());
    CountOom();
  } else {
    PALMSHED_TRY_VOID(CheckPresence());
  }
  if (in_force_.memory == Bytes{}) {
    oom_event_.reset();
    oom_ = 0;
  } else if (!oom_event_.valid()) {
    PALMSHED_TRY(oom_event_, WatchOom(at_.memory, oom_control_));
    CountOom();
  }
  return {};
}

/// Somebody may have removed groups since the child came to wait.
Result<void> Leaf1::CheckPresence() const {
  if (!at_.cpuacct.empty()) PALMSHED_TRY_VOID(ReadCpuTime());
  if (in_force_.memory != Bytes{}) PALMSHED_TRY_VOID(ReadOomKills());
  if (in_force_.pids != 0) PALMSHED_TRY_VOID(ReadPidsRefused());
  if (in_force_.cpu_quota != 0) PALMSHED_TRY_VOID(cpu_stat_.Read());
  return {};
}

Result<GroupUsage> Leaf1::ReadAllCounters() const {
  GroupUsage usage;
  if (!at_.cpuacct.empty()) {
    PALMSHED_TRY(usage.cpu_time, ReadCpuTime());
  }
  if (!at_.memory.empty()) {
    PALMSHED_TRY(usage.oom_kills, ReadOomKills());
    PALMSHED_TRY(usage.memory_failures, ReadFailures());
  }
  if (!at_.pids.empty()) {
    PALMSHED_TRY(usage.pids_refused, ReadPidsRefused());
  }
  if (!at_.cpu.empty()) PALMSHED_TRY_VOID(ReadThrottled(usage));
  return usage;
}

// A caller waits for this: no file is opened that can have nothing to tell.
Result<GroupUsage> Leaf1::Usage() {
  GroupUsage usage;
  if (!at_.cpuacct.empty()) {
    PALMSHED_TRY(usage.cpu_time, CpuTime());
  }
  PALMSHED_TRY_VOID(MemoryUsage(usage));
  if (in_force_.pids != 0) {
    PALMSHED_TRY(const std::uint64_t refused, ReadPidsRefused());
    usage.pids_refused = Since(refused, begin_.pids_refused);
  }
  if (in_force_.cpu_quota != 0) {
    PALMSHED_TRY_VOID(ReadThrottled(usage));
    *usage.throttled -= begin_.throttled.value_or(nanoseconds(0));
    usage.throttled_periods = Since(usage.throttled_periods, begin_.throttled_periods);
  }
  return usage;
}

Result<void> Leaf1::MemoryUsage(GroupUsage& usage) {
  if (at_.memory.empty()) return {};
  // The leaf first: the kernel tells the group above before it. A limit above told both.
  oom_ += Drain(oom_event_.get());
  if (oom_ > 0) usage.oom = Since(oom_, above_->Total() - oom_above_begin_);
  PALMSHED_TRY(const std::uint64_t kills, ReadOomKills());
  usage.oom_kills = Since(kills, begin_.oom_kills);
  if (usage.oom == 0 && usage.oom_kills == 0) return {};
  PALMSHED_TRY(const std::uint64_t failures, ReadFailures());
  usage.memory_failures = Since(failures, begin_.memory_failures);
  return {};
}

Result<std::uint64_t> Leaf1::ReadOomKills() const { return oom_control_.ReadKey("oom_kill"); }

Result<std::uint64_t> Leaf1::ReadFailures() const { return failures_.ReadNumber(); }

Result<std::uint64_t> Leaf1::ReadPidsRefused() const { return pids_events_.ReadKey("max"); }

Result<void> Leaf1::ReadThrottled(GroupUsage& usage) const {
  PALMSHED_TRY(const std::string stat, cpu_stat_.Read());
  usage.throttled = nanoseconds(GroupKey(stat, "throttled_time"));
  usage.throttled_periods = GroupKey(stat, "nr_throttled");
  return {};
}

Result<nanoseconds> Leaf1::ReadCpuTime() const {
  PALMSHED_TRY(const std::uint64_t used, cpu_time_.ReadNumber());
  return nanoseconds(used);
}

Result<nanoseconds> Leaf1::CpuTime() const {
  PALMSHED_TRY(const nanoseconds used, ReadCpuTime());
  return used - begin_.cpu_time.value_or(nanoseconds(0));
}

Result<std::optional<Bytes>> Leaf1::AnonymousMemory() const {
  if (at_.memory.empty()) return std::optional<Bytes>();
  PALMSHED_TRY(const std::string stat, sys::ReadFile(at_.memory + "/memory.stat"));
  const char* const files = Faulty("page-cache-counts") ? "total_cache" : "total_shmem";
  return Bytes{GroupKey(stat, "total_rss") + GroupKey(stat, files) + GroupKey(stat, "total_swap")};
}

void Leaf1::Kill() {
  // Nothing to be done about a failure: init can kill the execution too.
  if (!at_.unified.empty()) (void)WriteGroupFile(at_.unified + "/cgroup.kill", "1");
}

/// Attach moves a process everywhere or fails, so one of the directories will do. A process that
/// nobody has waited for yet is no longer in cgroup.procs, but takes a number.
bool Leaf1::Empty() const {
  if (!at_.pids.empty()) {
    const auto count = ReadGroupNumber(at_.pids + "/pids.current");
    return count && *count == 0;
  }
  return std::ranges::all_of(at_.Directories(), [](const std::string& directory) {
    const auto processes = sys::ReadFile(directory + "/cgroup.procs");
    return processes && processes->empty();
  });
}

bool Leaf1::Reusable() const { return !unknown_limits_ && Empty() && HardlyCharged(); }

bool Leaf1::HardlyCharged() const {
  if (at_.memory.empty()) return true;
  const auto charged = charged_.ReadNumber();
  if (!charged) return false;
  if (*charged < Count(kNearlyNothing)) return true;
  const auto stat = sys::ReadFile(at_.memory + "/memory.stat");
  if (!stat) return false;
  // tmpfs is counted as cache, but cannot be given back.
  const std::uint64_t files = Since(GroupKey(*stat, "total_cache"), GroupKey(*stat, "total_shmem"));
  return Since(*charged, files) < Count(kNearlyNothing);
}

}  // namespace

Group1 Group1::Below(const std::string& name) const {
  const auto below = [&](const std::string& directory) {
    return directory.empty() ? directory : directory + "/" + name;
  };
  return {.memory = below(memory),
          .pids = below(pids),
          .cpu = below(cpu),
          .cpuacct = below(cpuacct),
          .unified = below(unified)};
}

std::vector<std::string> Group1::Directories() const {
  std::vector<std::string> all;
  for (const std::string* directory : {&unified, &memory, &pids, &cpu, &cpuacct}) {
    if (!directory->empty() && std::ranges::find(all, *directory) == all.end()) {
      all.push_back(*directory);
    }
  }
  return all;
}

Result<std::shared_ptr<OomCount>> OomCount::Of(const std::string& group) {
  GroupFile oom_control = OomControlOf(group);
  auto watch = WatchOom(group, oom_control);
  if (watch) return std::make_shared<OomCount>(*std::move(watch));
  if (watch.error().sys_errno != ENOENT) return std::unexpected(std::move(watch.error()));
  return std::make_shared<OomCount>(UniqueFd());
}

std::uint64_t OomCount::Total() {
  const std::lock_guard lock(mu_);  // Over a read that does not wait.
  total_ += Drain(event_.get());
  return total_;
}

std::unique_ptr<CgroupLeaf> MakeLeaf1(Group1 leaf, std::shared_ptr<OomCount> above, Swap swap) {
  return std::make_unique<Leaf1>(std::move(leaf), std::move(above), swap);
}

}  // namespace palmshed::kernel
