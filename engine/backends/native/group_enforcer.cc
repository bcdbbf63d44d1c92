// Theory of operation. The kernel holds an execution to its limits of memory, processes and
// quota; what is left to do here:
//
//   CPU time   There is no event for it. A timer looks when the budget could be used up at the
//              earliest, which is never too late, and again for what is left by then.
//   memory     The kernel tells when the limit left nothing to give up (v1), and the caller kills
//              the rest of the execution; or it kills all by itself (v2).
//   weight     No limit, but what keeps the engine and its short executions quick beside those
//              that use the processors up: after a while a program counts a tenth.
//   at the end The leaf's own counters are the evidence. A process killed because the whole host,
//              or a group above, ran out of memory did not meet this limit, and is not said to.
#include "backends/native/group_enforcer.h"

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "backends/native/enforcer.h"
#include "base/faults.h"
#include "base/loop.h"
#include "base/result.h"
#include "base/waiting.h"
#include "kernel/cgroup.h"
#include "palmshed/error.h"
#include "palmshed/result.h"
#include "palmshed/units.h"
#include "plan/plan.h"

namespace palmshed::backends::native {
namespace {

using std::chrono::duration_cast;
using std::chrono::nanoseconds;

constexpr Millis kShortestLook{2};
constexpr Millis kRetry{10};         ///< After a counter could not be read, for want of files.
constexpr Millis kQuotaPeriod{100};  ///< As kernel/cgroup*_leaf.cc have it.
constexpr Millis kFaultyDelay{100};
constexpr Millis kFirstSample{10};  ///< And when a program has run for a while.
constexpr Millis kLastSample{200};
constexpr std::uint64_t kBackstopSeconds = 1;

/// The earliest moment at which `left` of CPU time could be used up. All processors may be busy;
/// a quota lets a period's worth of it pass at once.
nanoseconds SoonestUsed(nanoseconds left, double quota, double processors) {
  const auto count = static_cast<double>(left.count());
  double wait = count / std::max(processors, 1.0);
  if (quota > 0) {
    const auto period = static_cast<double>(nanoseconds(kQuotaPeriod).count());
    wait = std::max(wait, count / quota - period);
  }
  const auto longest = static_cast<double>(nanoseconds(Bounded(Millis::max())).count());
  return std::max<nanoseconds>(nanoseconds(static_cast<std::int64_t>(std::min(wait, longest))),
                               kShortestLook);
}

/// Of a whole process, dead ones excepted.
nanoseconds CpuTimeOf(pid_t process) {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(process, &clock) != 0) return nanoseconds(0);
  if (::clock_gettime(clock, &used) != 0) return nanoseconds(0);
  return std::chrono::seconds(used.tv_sec) + nanoseconds(used.tv_nsec);
}

/// The weight of a sandbox: a tenth while all that runs in it has run for a while. Any thread.
class Seniority {
 public:
  explicit Seniority(kernel::CgroupGroup* group) : group_(group) {}

  /// One program, from its beginning to its end.
  class Program {
   public:
    explicit Program(Seniority* sandbox) : sandbox_(sandbox) { sandbox_->Change(+1, 0); }
    ~Program() { senior_ ? sandbox_->Change(0, -1) : sandbox_->Change(-1, 0); }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    /// It has run for a while. Once at most.
    void Age() {
      senior_ = true;
      sandbox_->Change(-1, +1);
    }

   private:
    Seniority* sandbox_;
    bool senior_ = false;
  };

 private:
  void Change(int juniors, int seniors) {
    const std::lock_guard lock(mu_);
    juniors_ += juniors;
    seniors_ += seniors;
    const auto weight =
        juniors_ == 0 && seniors_ > 0 ? kernel::CpuWeight::kTenth : kernel::CpuWeight::kUsual;
    if (std::exchange(weight_, weight) != weight) group_->SetWeight(weight);
  }

  kernel::CgroupGroup* const group_;
  std::mutex mu_;
  int juniors_ = 0;
  int seniors_ = 0;
  kernel::CpuWeight weight_ = kernel::CpuWeight::kUsual;
};

class GroupEnforcer final : public Enforcer {
 public:
  GroupEnforcer(std::unique_ptr<kernel::CgroupLeaf> leaf, Seniority& seniority, unsigned processors)
      : leaf_(std::move(leaf)), seniority_(seniority), processors_(processors) {}

  bool NeedsChild() const override { return true; }
  Result<void> Adopt(pid_t child, ChildRole role) override {
    child_ = child;
    role_ = role;
    return leaf_->Attach(child);
  }
  bool Renew() override { return leaf_->Renew() || Faulty("leftovers-charged"); }
  void Rest() override { leaf_->Rest(); }
  Result<void> Begin(const plan::Limits& limits, CarriedLimits& carried) override;
  void Watch(Loop& loop, std::function<void()> exceeded) override;
  void Kill() override { leaf_->Kill(); }
  Enforced SoFar() override;
  Enforced Finish() override;
  bool Reusable() const override { return Faulty("leftovers-charged") || leaf_->Reusable(); }

 private:
  kernel::GroupLimits ForGroup() const;
  void LookAtCpuTime();
  Result<nanoseconds> CpuTime() const;
  void WatchMemory();
  void CheckMemory();
  void SampleMemory();
  void Exceed(const LimitHit& hit);
  void StopWatching();
  /// What the counters say, in the end or on the way.
  std::optional<LimitHit> HitIn(const kernel::GroupUsage& usage) const;
  LimitHit CpuHit(nanoseconds used) const;
  LimitHit MemoryHit() const;

  std::unique_ptr<kernel::CgroupLeaf> leaf_;
  Seniority& seniority_;
  const double processors_;
  pid_t child_ = 0;
  ChildRole role_ = ChildRole::kBecomesProgram;
  plan::Limits limits_{};
  std::optional<LimitHit> hit_{};
  std::optional<Seniority::Program> program_{};  ///< From Begin to Finish.
  Bytes peak_{};
  Millis next_sample_{};
  Loop* loop_ = nullptr;  ///< Since Watch.
  std::function<void()> exceeded_{};
  std::unique_ptr<Loop::Timer> cpu_timer_{};
  std::unique_ptr<Loop::Timer> sample_timer_{};
  std::unique_ptr<Loop::Watch> oom_watch_{};
};

kernel::GroupLimits GroupEnforcer::ForGroup() const {
  // The child counts, beside what it bears.
  const bool one_more = role_ == ChildRole::kBearsProgram && limits_.pids != 0;
  return {.memory = limits_.memory,
          .pids = limits_.pids + (one_more ? 1U : 0U),
          .cpu_quota = limits_.cpu_quota};
}

Result<void> GroupEnforcer::Begin(const plan::Limits& limits, CarriedLimits& carried) {
  const bool stays = Faulty("limit-stays") && limits_.any();
  limits_ = limits;
  hit_.reset();
  peak_ = Bytes{};
  const kernel::GroupLimits none;
  const bool later = Faulty("limit-after-start");
  if (!stays) PALMSHED_TRY_VOID(leaf_->Limit(later ? none : ForGroup()));
  PALMSHED_TRY_VOID(leaf_->Begin());
  program_.emplace(&seniority_);
  if (limits_.cpu_time > Millis(0)) {
    // For the case that the engine cannot look in time.
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(Bounded(limits_.cpu_time));
    const auto backstop = static_cast<std::uint64_t>(seconds.count()) + kBackstopSeconds;
    const bool lower = carried.cpu_seconds == 0 || backstop < carried.cpu_seconds;
    if (lower) carried.cpu_seconds = backstop;
  }
  return {};
}

void GroupEnforcer::Watch(Loop& loop, std::function<void()> exceeded) {
  loop_ = &loop;
  exceeded_ = std::move(exceeded);
  if (Faulty("limit-after-start")) {
    sample_timer_ = loop.After(kFaultyDelay, [this] { (void)leaf_->Limit(ForGroup()); });
    return;
  }
  if (limits_.cpu_time > Millis(0)) {
    const nanoseconds wait = SoonestUsed(Bounded(limits_.cpu_time), limits_.cpu_quota, processors_);
    cpu_timer_ = loop.After(wait, [this] { LookAtCpuTime(); });
  }
  if (limits_.memory != Bytes{}) WatchMemory();
  next_sample_ = kFirstSample;
  sample_timer_ = loop.After(next_sample_, [this] {
    program_->Age();
    if (limits_.memory != Bytes{}) SampleMemory();
  });
}

Result<nanoseconds> GroupEnforcer::CpuTime() const {
  if (Faulty("cpu-of-main-only")) return CpuTimeOf(child_);
  return leaf_->CpuTime();
}

void GroupEnforcer::LookAtCpuTime() {
  nanoseconds wait = kRetry;
  if (const auto used = CpuTime()) {
    const nanoseconds left = nanoseconds(Bounded(limits_.cpu_time)) - *used;
    if (left <= nanoseconds(0)) return Exceed(CpuHit(*used));
    wait = SoonestUsed(left, limits_.cpu_quota, processors_);
  }
  cpu_timer_ = loop_->After(wait, [this] { LookAtCpuTime(); });
}

void GroupEnforcer::WatchMemory() {
  if (leaf_->OomEvent() >= 0) {
    auto watch = loop_->WatchReadable(leaf_->OomEvent(), [this] { CheckMemory(); });
    // Without one, each sample looks.
    if (watch) oom_watch_ = std::move(*watch);
  }
}

void GroupEnforcer::CheckMemory() {
  const auto usage = leaf_->Usage();
  if (usage && usage->oom > 0 && !Faulty("oom-not-reported")) Exceed(MemoryHit());
}

void GroupEnforcer::SampleMemory() {
  const auto memory = leaf_->AnonymousMemory();
  if (memory && *memory) peak_ = std::max(peak_, **memory);
  next_sample_ = std::min(next_sample_ * 2, kLastSample);
  sample_timer_ = loop_->After(next_sample_, [this] { SampleMemory(); });
  if (!oom_watch_ && leaf_->OomEvent() >= 0) CheckMemory();
}

void GroupEnforcer::Exceed(const LimitHit& hit) {
  hit_ = hit;
  StopWatching();
  // It may let go of what is called.
  const std::function<void()> exceeded = std::exchange(exceeded_, nullptr);
  exceeded();
}

void GroupEnforcer::StopWatching() {
  cpu_timer_.reset();
  sample_timer_.reset();
  oom_watch_.reset();
}

LimitHit GroupEnforcer::CpuHit(nanoseconds used) const {
  return {.cause = Cause::kCpuTime,
          .limit = static_cast<std::uint64_t>(limits_.cpu_time.count()),
          .observed = static_cast<std::uint64_t>(duration_cast<Millis>(used).count())};
}

LimitHit GroupEnforcer::MemoryHit() const {
  return {.cause = Cause::kMemory,
          .limit = Count(limits_.memory),
          .observed = std::max(Count(limits_.memory), Count(peak_))};
}

std::optional<LimitHit> GroupEnforcer::HitIn(const kernel::GroupUsage& usage) const {
  const bool told = usage.oom > 0 && !Faulty("oom-not-reported");
  if (limits_.memory != Bytes{} && told) return MemoryHit();
  const bool all = !Faulty("cpu-of-main-only");
  const bool budget = limits_.cpu_time > Millis(0) && usage.cpu_time && all;
  if (budget && *usage.cpu_time >= nanoseconds(Bounded(limits_.cpu_time))) {
    return CpuHit(*usage.cpu_time);
  }
  return std::nullopt;
}

Enforced GroupEnforcer::Finish() {
  StopWatching();
  exceeded_ = nullptr;
  program_.reset();
  return SoFar();
}

Enforced GroupEnforcer::SoFar() {
  Enforced enforced{.killed = true};
  if (const auto usage = leaf_->Usage()) {
    enforced.killed = usage->oom > 0 || usage->oom_kills > 0;
    if (!hit_) hit_ = HitIn(*usage);
    enforced.cpu_time = usage->cpu_time;
    const auto add = [&](const char* name, std::uint64_t count) {
      if (count > 0) enforced.evidence.emplace_back(name, static_cast<std::int64_t>(count));
    };
    // On v1 the caller may have killed everything before the kernel had chosen whom to kill.
    add("oom", usage->oom);
    add("oom_kill", usage->oom_kills);
    if (usage->oom > 0 || usage->oom_kills > 0) add("failcnt", usage->memory_failures);
    add(kPidsRefused, usage->pids_refused);
    add("throttled_periods", usage->throttled_periods);
    const auto throttled = duration_cast<Millis>(usage->throttled.value_or(nanoseconds(0)));
    add(kThrottledMs, static_cast<std::uint64_t>(std::max<Millis::rep>(throttled.count(), 0)));
  }
  if (hit_ && hit_->cause == Cause::kMemory) peak_ = limits_.memory;
  if (peak_ != Bytes{}) enforced.peak_memory = peak_;
  enforced.hit = hit_;
  return enforced;
}

class GroupSource final : public EnforcerSource {
 public:
  explicit GroupSource(GroupSourceParts parts) : parts_(std::move(parts)) {}

  bool NeedsChild() const override { return true; }
  bool TakesBearer() const override { return parts_.bearers; }
  plan::Limits Covered(const plan::Limits& limits) const override {
    const kernel::CgroupControllers has = parts_.tree->controllers();
    plan::Limits covered;
    if (has.cpu_time) covered.cpu_time = limits.cpu_time;
    if (has.cpu_quota) covered.cpu_quota = limits.cpu_quota;
    if (has.memory) covered.memory = limits.memory;
    if (has.pids) covered.pids = limits.pids;
    return covered;
  }

  Result<std::unique_ptr<Enforcer>> Make() override {
    PALMSHED_TRY(kernel::CgroupGroup* const group, Group());
    PALMSHED_TRY(auto leaf, group->MakeLeaf());
    return std::make_unique<GroupEnforcer>(std::move(leaf), *seniority_, parts_.processors);
  }

 private:
  Result<kernel::CgroupGroup*> Group() {
    // Held while the group is made: whoever comes meanwhile needs it too.
    const std::lock_guard lock(mu_);
    if (group_) return group_.get();
    if (!recorded_) PALMSHED_TRY_VOID(parts_.record(parts_.tree->DirectoriesOf(parts_.name)));
    recorded_ = true;
    PALMSHED_TRY(group_, parts_.tree->MakeGroup(parts_.name));
    seniority_.emplace(group_.get());
    return group_.get();
  }

  const GroupSourceParts parts_;
  std::mutex mu_;
  bool recorded_ = false;                         ///< Also where no group could be made then.
  std::unique_ptr<kernel::CgroupGroup> group_{};  ///< Stays, once made, as does the next.
  std::optional<Seniority> seniority_{};
};

}  // namespace

std::unique_ptr<EnforcerSource> MakeGroupSource(GroupSourceParts parts) {
  return std::make_unique<GroupSource>(std::move(parts));
}

}  // namespace palmshed::backends::native
