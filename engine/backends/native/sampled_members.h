// Whose a process is, and what the processes of an execution have used of the processor, as far as
// looking at them every now and then can tell.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "kernel/process_table.h"

namespace palmshed::backends::native {

/// Tells the processes of a sandbox's executions apart. The rule:
///  1. Whoever was seen to belong to an execution belongs to it to the end, whoever adopts it.
///  2. Else it belongs where its parent does.
///  3. Else, its parent being gone, where others of its session do, or did. Every execution has a
///     session of its own.
///  4. Else, if it comes from an orphan, it has left its session and its parent between two looks,
///     and nobody can tell: it counts in every execution that is known. Executions of a sandbox are
///     one trust domain.
///  5. Else it belongs to an execution without limits. Neither do init, and what stays in its
///  session
///     (children that wait for a program), belong to anybody.
class Members {
 public:
  using Run = std::uint32_t;
  using Census = std::map<Run, std::vector<kernel::ProcessStat>>;

  void Add(Run run, const kernel::ProcessId& child);
  void Remove(Run run);
  /// `all` as of ProcessTable::Read, init first; `is_orphan` tells of a child of init's whether it
  /// was adopted (ProcessTable::Orphans).
  Census Update(const std::vector<kernel::ProcessStat>& all,
                const std::function<bool(pid_t)>& is_orphan);

 private:
  std::map<kernel::ProcessId, Run> seen_;
  std::map<Run, std::set<pid_t>> sessions_;
};

/// Adds up CPU time over the life and death of processes. What it says never falls, and is a lower
/// bound: what starts and ends between two looks counts only if its parent waits for it.
class CpuLedger {
 public:
  void Update(const std::vector<kernel::ProcessStat>& members);
  std::chrono::nanoseconds total() const { return total_; }

 private:
  struct Account {
    pid_t parent;
    std::chrono::nanoseconds used;           ///< Its own, and of children it has waited for.
    std::chrono::nanoseconds waited;         ///< The latter alone.
    std::chrono::nanoseconds waited_before;  ///< When it was seen first.
    std::chrono::nanoseconds dead{};         ///< Of children seen alive that have ended.
    std::chrono::nanoseconds lost{};         ///< Of those, what it has never waited for.
  };
  using Accounts = std::map<kernel::ProcessId, Account>;
  Account* HeirOf(const Account& dead, Accounts& now) const;

  Accounts accounts_;
  std::chrono::nanoseconds lost_{};
  std::chrono::nanoseconds total_{};
};

}  // namespace palmshed::backends::native
