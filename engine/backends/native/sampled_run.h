// One execution under sampled limits, shared by its enforcer and the thread that looks.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "backends/backend.h"
#include "backends/native/sampled_members.h"
#include "backends/native/sampled_memory.h"
#include "backends/native/sampled_pace.h"
#include "base/loop.h"
#include "base/unique_fd.h"
#include "kernel/process_table.h"
#include "kernel/task_clock.h"
#include "palmshed/result.h"
#include "palmshed/units.h"
#include "plan/plan.h"

namespace palmshed::backends::native {

/// The ways into a sandbox, open while an execution needs them.
struct SampledSight {
  kernel::ProcessTable table;  ///< Read by one thread at a time.
  UniqueFd sysv;
  MemoryPlaces places;
};

/// What is known of an execution's use.
struct SampledUse {
  std::optional<std::chrono::nanoseconds> cpu_time{};
  std::uint64_t peak_memory = 0;  ///< 0: nobody has looked.
  std::uint64_t looks = 0;
  std::uint64_t failed_looks = 0;
  std::optional<LimitHit> hit{};
};

struct SampledRun {
  using Time = std::chrono::steady_clock::time_point;

  SampledRun(std::uint32_t its_number, kernel::ProcessId its_child, const plan::Limits& its_limits,
             unsigned its_processors)
      : number(its_number),
        child(its_child),
        limits(its_limits),
        processors(its_processors),
        pace(Count(its_limits.memory)) {}

  /// When to look first, counted from the start.
  std::chrono::nanoseconds First() const;
  /// True when a look at the processes can be left out: it has not run since the last.
  bool IsAsleep(Time now);
  /// One look; `members` are its processes.
  void Look(const std::shared_ptr<SampledRun>& self,
            const std::vector<kernel::ProcessStat>& members, Time now);
  /// A look that could not be taken.
  void Miss(Time now);
  /// CPU time as far as known, the kernel's own count included.
  std::optional<std::chrono::nanoseconds> CpuTime() const;
  SampledUse Use() const;

  const std::uint32_t number;
  const kernel::ProcessId child;  ///< By the table's numbers.
  const plan::Limits limits;
  const unsigned processors;  ///< Of the host: asking takes longer than all else here.
  std::optional<kernel::TaskClock> clock{};
  std::shared_ptr<SampledSight> sight{};  ///< Shared by all that run in a sandbox.
  Loop* loop = nullptr;                   ///< Set, like the next, before it joins.
  std::function<void()> exceeded{};       ///< Runs on the loop.
  std::atomic<bool> ended = false;

  // The thread's own, once it has joined.
  MemoryMeter meter{};
  MemoryPace pace;
  CpuLedger ledger{};
  Time started{};
  Time last_look{};
  Time due{};
  std::chrono::nanoseconds cpu_at_look{};  ///< By the kernel's clock.
  std::chrono::nanoseconds cpu_used{};     ///< The most that anything has told.
  unsigned quiet_looks = 0;                ///< In a row, without anything having run.
  std::optional<kernel::ProcessPeek> peek{};

 private:
  static void Exceed(const std::shared_ptr<SampledRun>& self, const LimitHit& hit);
  /// When to look at memory again.
  std::chrono::nanoseconds LookAtMemory(const std::shared_ptr<SampledRun>& self,
                                        const std::vector<kernel::ProcessStat>& members, Time now,
                                        bool busy);
  std::chrono::nanoseconds NextForCpu(std::chrono::nanoseconds used) const;
  void Quieten(const std::vector<kernel::ProcessStat>& members, bool busy);

  mutable std::mutex mu_;
  SampledUse use_{};
};

}  // namespace palmshed::backends::native
