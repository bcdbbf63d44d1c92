#include "backends/native/sampled_run.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "backends/backend.h"
#include "backends/native/sampled_pace.h"
#include "kernel/process_table.h"
#include "palmshed/result.h"
#include "palmshed/units.h"

namespace palmshed::backends::native {
namespace {

using std::chrono::nanoseconds;

// With the kernel's clock: to find who has got away from it. Without: children that nobody waits
// for have to be seen while they live.
constexpr nanoseconds kLatestWithClock = std::chrono::seconds(1);
constexpr nanoseconds kLatest = std::chrono::milliseconds(20);
// What has not run cannot have grown, and asking whether it has is much cheaper than a look. With
// the kernel's clock it takes one call. A process that has got away from the clock
// (kernel/task_clock.h) would be taken for asleep: so several looks in a row have to agree before
// that is believed, and then not for ever.
constexpr nanoseconds kPeek = std::chrono::milliseconds(100);
constexpr unsigned kQuietLooks = 4;
constexpr nanoseconds kLongestSleep = std::chrono::seconds(1);
constexpr nanoseconds kRetry = std::chrono::milliseconds(5);
constexpr nanoseconds kNever = std::chrono::hours(1);

}  // namespace

nanoseconds SampledRun::NextForCpu(nanoseconds used) const {
  if (limits.cpu_time.count() == 0) return kNever;
  const nanoseconds latest = clock ? kLatestWithClock : quiet_looks < kQuietLooks ? kLatest : kPeek;
  return NextCpuLook(limits.cpu_time, used, processors, latest);
}

nanoseconds SampledRun::First() const {
  const bool memory = limits.memory != Bytes{};
  return std::min(NextForCpu(nanoseconds(0)), memory ? pace.First() : kNever);
}

bool SampledRun::IsAsleep(Time now) {
  if (quiet_looks < kQuietLooks || now - last_look >= kLongestSleep) return false;
  if (clock) {
    const auto used = clock->Read();
    if (!used || *used != cpu_at_look) return false;
  } else if (!peek || !peek->Unchanged()) {
    return false;
  }
  due = now + std::min(kPeek, NextForCpu(cpu_used));
  return true;
}

void SampledRun::Quieten(const std::vector<kernel::ProcessStat>& members, bool busy) {
  quiet_looks = busy ? 0 : quiet_looks + 1;
  if (busy) peek.reset();
  if (clock || quiet_looks < kQuietLooks) return;
  peek = kernel::ProcessPeek::Of(sight->places.proc, members);
}

void SampledRun::Exceed(const std::shared_ptr<SampledRun>& self, const LimitHit& hit) {
  {
    const std::lock_guard lock(self->mu_);
    if (self->use_.hit) return;
    self->use_.hit = hit;
  }
  self->loop->Post([self] {
    if (!self->ended) self->exceeded();
  });
}

nanoseconds SampledRun::LookAtMemory(const std::shared_ptr<SampledRun>& self,
                                     const std::vector<kernel::ProcessStat>& members, Time now,
                                     bool busy) {
  const std::uint64_t limit = Count(limits.memory);
  const auto reading = meter.Measure(sight->places, members, limit);
  const nanoseconds cost = std::chrono::steady_clock::now() - now;
  {
    const std::lock_guard lock(mu_);
    use_.peak_memory = meter.peak();
    if (!reading) ++use_.failed_looks;
  }
  if (!reading) return kRetry;
  if (reading->at_least > limit) {
    Exceed(self, {.cause = Cause::kMemory, .limit = limit, .observed = reading->at_least});
  }
  // Page cache may be in the upper bound; where that says too much, it says nothing.
  const std::uint64_t used = reading->at_most > limit ? reading->at_least : reading->at_most;
  return pace.Next(used, busy, now - last_look, cost);
}

void SampledRun::Look(const std::shared_ptr<SampledRun>& self,
                      const std::vector<kernel::ProcessStat>& members, Time now) {
  // Before the rest: what runs meanwhile makes the next look a busy one.
  const auto counted = clock ? std::optional(clock->Read()) : std::nullopt;
  const nanoseconds ledger_before = ledger.total();
  ledger.Update(members);
  nanoseconds used = std::max(ledger.total(), cpu_used);
  if (counted && *counted) used = std::max(used, **counted);
  const bool ran = counted && *counted && **counted != cpu_at_look;
  const bool busy = ran || ledger.total() != ledger_before;
  if (counted && *counted) cpu_at_look = **counted;
  cpu_used = used;
  {
    const std::lock_guard lock(mu_);
    ++use_.looks;
    use_.cpu_time = used;
  }
  Quieten(members, busy);
  nanoseconds next = NextForCpu(used);
  const auto spent = std::chrono::floor<Millis>(used);
  if (limits.cpu_time.count() != 0 && used > limits.cpu_time) {
    Exceed(self, {.cause = Cause::kCpuTime,
                  .limit = static_cast<std::uint64_t>(limits.cpu_time.count()),
                  .observed = static_cast<std::uint64_t>(spent.count())});
  }
  if (limits.memory != Bytes{}) next = std::min(next, LookAtMemory(self, members, now, busy));
  last_look = now;
  due = std::chrono::steady_clock::now() + next;
}

void SampledRun::Miss(Time now) {
  const std::lock_guard lock(mu_);
  ++use_.failed_looks;
  due = now + kRetry;
}

SampledUse SampledRun::Use() const {
  SampledUse use;
  {
    const std::lock_guard lock(mu_);
    use = use_;
  }
  if (!clock) return use;
  if (const auto counted = clock->Read()) {
    use.cpu_time = std::max(*counted, use.cpu_time.value_or(nanoseconds(0)));
  }
  return use;
}

}  // namespace palmshed::backends::native
