#include "backends/native/sampled_enforcer.h"

#include <fcntl.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/native/enforcer.h"
#include "backends/native/sampled_members.h"
#include "backends/native/sampled_memory.h"
#include "backends/native/sampled_run.h"
#include "base/loop.h"
#include "base/processors.h"
#include "base/result.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "base/worker.h"
#include "kernel/process_memory.h"
#include "kernel/process_table.h"
#include "kernel/task_clock.h"
#include "palmshed/error.h"
#include "palmshed/result.h"
#include "palmshed/units.h"
#include "plan/plan.h"

namespace palmshed::backends::native {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLinger = std::chrono::seconds(1);
constexpr char kRemedy[] =
    "run the engine where it has a control group of its own: systemd-run --user --scope -p "
    "Delegate=yes";

class SampledEnforcer final : public Enforcer {
 public:
  explicit SampledEnforcer(SampledSource* source) : source_(source) {}
  ~SampledEnforcer() override {
    if (run_) End();
  }
  SampledEnforcer(const SampledEnforcer&) = delete;
  SampledEnforcer& operator=(const SampledEnforcer&) = delete;

  bool NeedsChild() const override { return true; }

  Result<void> Adopt(pid_t child, ChildRole /*role*/) override {
    host_pid_ = child;
    rests_ = false;
    PALMSHED_TRY(child_, OpenOnChild());
    return {};
  }

  void Rest() override {
    sight_.reset();
    clock_.reset();
    rests_ = true;
  }

  Result<void> Begin(const plan::Limits& limits, CarriedLimits& carried) override {
    if (std::exchange(rests_, false)) PALMSHED_TRY_VOID(OpenAgain());
    const plan::Limits covered = source_->Covered(limits);
    run_ = std::make_shared<SampledRun>(source_->NextRun(), child_, covered, source_->processors());
    if (covered.memory != Bytes{} || covered.cpu_time.count() != 0) {
      run_->sight = std::exchange(sight_, nullptr);
      PALMSHED_TRY_VOID(run_->meter.Begin(run_->sight->places));
      run_->clock = std::exchange(clock_, std::nullopt);
    }
    const auto lower = [](std::uint64_t& limit, std::uint64_t to) {
      if (to != 0 && (limit == 0 || to < limit)) limit = to;
    };
    lower(carried.processes, covered.pids);
    // Of one process alone, and in whole seconds: for when nobody can look any more.
    constexpr std::int64_t kSecond = 1000;
    const std::int64_t cpu = covered.cpu_time.count();
    if (cpu != 0) lower(carried.cpu_seconds, static_cast<std::uint64_t>(cpu / kSecond + 2));
    return {};
  }

  void Watch(Loop& loop, std::function<void()> exceeded) override {
    if (!run_->sight) return;
    run_->loop = &loop;
    run_->exceeded = std::move(exceeded);
    run_->started = Clock::now();
    run_->last_look = run_->started;
    // Most executions have ended by then, and no thread was needed.
    first_ = loop.After(run_->First(), [this] {
      first_.reset();
      joined_ = true;
      source_->Join(run_);
    });
  }

  void Kill() override {}

  Enforced SoFar() override {
    Enforced enforced;
    if (run_->sight) {
      const SampledUse use = run_->Use();
      enforced.hit = use.hit;
      enforced.cpu_time = use.cpu_time;
      if (use.peak_memory != 0) enforced.peak_memory = Bytes{use.peak_memory};
      enforced.evidence = {{"sampled_looks", static_cast<std::int64_t>(use.looks)},
                           {"sampled_failures", static_cast<std::int64_t>(use.failed_looks)}};
      // It may have got over its budget and ended before the look that would have found it.
      const Millis budget = run_->limits.cpu_time;
      if (!enforced.hit && budget.count() != 0 && use.cpu_time && *use.cpu_time > budget) {
        const auto spent = std::chrono::floor<Millis>(*use.cpu_time);
        enforced.hit = {.cause = Cause::kCpuTime,
                        .limit = static_cast<std::uint64_t>(budget.count()),
                        .observed = static_cast<std::uint64_t>(spent.count())};
      }
    }
    return enforced;
  }

  Enforced Finish() override {
    Enforced enforced = SoFar();
    End();
    return enforced;
  }

  bool Reusable() const override { return true; }

 private:
  /// On the child that waits; its identity.
  Result<kernel::ProcessId> OpenOnChild() {
    clock_.reset();
    PALMSHED_TRY(sight_, source_->Open());
    PALMSHED_TRY(const pid_t number, sight_->table.NumberOf(host_pid_));
    PALMSHED_TRY(const kernel::ProcessStat stat, sight_->table.Stat(number));
    if (!source_->sandbox().task_clock) return stat.id;
    auto clock = kernel::TaskClock::Open(host_pid_);
    if (clock) {
      clock_ = *std::move(clock);
    } else if (clock.error().code != ErrorCode::kUnsupported) {
      return std::unexpected(std::move(clock.error()));
    }
    return stat.id;
  }

  /// Somebody else may have the number by now.
  Result<void> OpenAgain() {
    PALMSHED_TRY(const kernel::ProcessId now, OpenOnChild());
    if (now == child_) return {};
    return std::unexpected(SysError("the child that waited", ESRCH));
  }

  void End() {
    first_.reset();
    run_->ended = true;
    if (std::exchange(joined_, false)) source_->Leave(*run_);
    run_.reset();
  }

  SampledSource* source_;
  pid_t host_pid_ = 0;  ///< Of the child.
  kernel::ProcessId child_{};
  bool rests_ = false;
  std::shared_ptr<SampledSight> sight_;  ///< Opening it takes longer than a start may.
  std::optional<kernel::TaskClock> clock_;
  std::shared_ptr<SampledRun> run_;
  std::unique_ptr<Loop::Timer> first_;
  bool joined_ = false;
};

}  // namespace

// ---- the source

Result<std::unique_ptr<SampledSource>> SampledSource::Create(SampledSandbox sandbox) {
  // Without namespaces these are the host's, and init's root cannot be looked into.
  if (!sandbox.own_processes) sandbox.tmpfs.clear();
  std::unique_ptr<SampledSource> source(new SampledSource(std::move(sandbox)));
  source->processors_ = OnlineProcessors();
  PALMSHED_TRY(source->memfd_device_, kernel::MemfdDevice());
  if (auto sight = source->Open(); !sight) {
    return std::unexpected(Unsupported("memory and cpuTimeLimit without control groups",
                                       sight.error().message, kRemedy));
  }
  return source;
}

SampledSource::~SampledSource() {
  {
    const std::lock_guard lock(mu_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

plan::Limits SampledSource::Covered(const plan::Limits& limits) const {
  return {.cpu_time = limits.cpu_time,
          .memory = limits.memory,
          .pids = sandbox_.own_users ? limits.pids : 0};
}

Result<std::unique_ptr<Enforcer>> SampledSource::Make() {
  return std::make_unique<SampledEnforcer>(this);
}

Result<kernel::ProcessTable> SampledSource::OpenTable() const {
  if (sandbox_.own_processes && sandbox_.own_proc) {
    return kernel::ProcessTable::OfNamespace(sandbox_.init);
  }
  return kernel::ProcessTable::Below(sandbox_.init);
}

Result<std::shared_ptr<SampledSight>> SampledSource::OpenAll() const {
  PALMSHED_TRY(kernel::ProcessTable table, OpenTable());
  MemoryPlaces places{.proc = table.directory(), .memfd_device = memfd_device_};
  const std::string root = "/proc/" + std::to_string(sandbox_.init) + "/root";
  for (const std::string& path : sandbox_.tmpfs) {
    // In a root of the workload's making a link could lead anywhere; the engine made this one, and
    // nobody can write beside the mount points.
    PALMSHED_TRY(UniqueFd fd, sys::Open(root + path, O_PATH | O_DIRECTORY | O_NOFOLLOW));
    places.tmpfs.push_back(std::move(fd));
  }
  UniqueFd sysv;
  if (sandbox_.open_sysv) {
    PALMSHED_TRY(sysv, sandbox_.open_sysv());
    places.sysv = sysv.get();
  }
  return std::make_shared<SampledSight>(SampledSight{
      .table = std::move(table), .sysv = std::move(sysv), .places = std::move(places)});
}

Result<std::shared_ptr<SampledSight>> SampledSource::Open() {
  const auto open = [this] {
    const std::lock_guard lock(mu_);
    return sight_.lock();
  };
  if (auto sight = open()) return sight;
  // Not under the lock: init's answer comes by way of the loop's thread, which may want it.
  PALMSHED_TRY(auto sight, OpenAll());
  const std::lock_guard lock(mu_);
  if (auto others = sight_.lock()) return others;
  sight_ = sight;
  return sight;
}

void SampledSource::Join(std::shared_ptr<SampledRun> run) {
  std::unique_lock lock(mu_);
  run->due = Clock::now();
  runs_.push_back(std::move(run));
  if (!serving_) {
    if (thread_.joinable()) thread_.join();  // It has left already.
    thread_ = StartQuietThread("palmshed-look", [this] { Serve(); });
    serving_ = thread_.joinable();
  }
  lock.unlock();
  changed_.notify_all();
}

void SampledSource::Leave(const SampledRun& run) {
  const std::lock_guard lock(mu_);
  std::erase_if(runs_, [&](const auto& joined) { return joined.get() == &run; });
}

// ---- the thread

void SampledSource::Serve() {
  std::unique_lock lock(mu_);
  while (!stopping_) {
    if (runs_.empty()) {
      const bool wanted =
          changed_.wait_for(lock, kLinger, [this] { return stopping_ || !runs_.empty(); });
      if (!wanted) break;
      continue;
    }
    auto due = Clock::time_point::max();
    for (const auto& run : runs_) due = std::min(due, run->due);
    if (due > Clock::now()) {
      (void)changed_.wait_until(lock, due);
      continue;
    }
    const Runs runs = runs_;
    lock.unlock();
    Look(runs);
    lock.lock();
  }
  serving_ = false;
}

void SampledSource::Look(const Runs& runs) {
  const auto now = Clock::now();
  Runs looked;
  for (const auto& run : runs) {
    if (run->due <= now && !run->IsAsleep(now)) looked.push_back(run);
  }
  if (looked.empty()) return;
  std::set<Members::Run> there;
  for (const auto& run : runs) {
    there.insert(run->number);
    if (known_.insert(run->number).second) members_.Add(run->number, run->child);
  }
  for (const Members::Run number : known_) {
    if (!there.contains(number)) members_.Remove(number);
  }
  known_ = std::move(there);
  kernel::ProcessTable& table = looked.front()->sight->table;
  const auto all = table.Read();
  if (!all) {
    for (const auto& run : looked) run->Miss(now);
    return;
  }
  std::optional<Result<std::set<pid_t>>> orphans;
  const auto is_orphan = [&](pid_t process) {
    if (!orphans) orphans = table.Orphans();
    return !*orphans || (*orphans)->contains(process);  // Where nobody tells, it counts.
  };
  const Members::Census census = members_.Update(*all, is_orphan);
  for (const auto& run : looked) run->Look(run, census.at(run->number), now);
}

}  // namespace palmshed::backends::native
