// Control groups behind one small interface, which kernel/cgroup1 and kernel/cgroup2 implement
// (cgroups(7); Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst of the kernel).
//
// A tree is the place where this process may make groups. In it stands a group per sandbox, and in
// that a leaf per execution. A leaf outlives its execution only when nothing is charged to it any
// more; what it counts is told from the moment of Begin.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/units.h"

namespace palmshed::kernel {

/// What a leaf is held to; zero: no limit.
struct GroupLimits {
  Bytes memory{};          ///< Swap included; page cache is given up before it counts.
  std::uint64_t pids = 0;  ///< Processes and threads.
  double cpu_quota = 0;    ///< Processors.
  GroupLimits WithoutMemory() const { return {.pids = pids, .cpu_quota = cpu_quota}; }
  bool operator==(const GroupLimits&) const = default;
};

/// What a leaf has counted since Begin, of what is limited. Absent: this kernel does not tell.
struct GroupUsage {
  std::optional<std::chrono::nanoseconds> cpu_time{};
  std::optional<std::chrono::nanoseconds> throttled{};  ///< Some kernels tell too little.
  std::uint64_t throttled_periods = 0;  ///< In how many tenths of a second the quota was used up.
  std::uint64_t memory_failures = 0;  ///< How often the memory limit was met. By itself that means
                                      ///< little: it may be 0 if nothing came of it.
  std::uint64_t oom = 0;              ///< How often the leaf's own limit left nothing to give up.
  std::uint64_t oom_kills = 0;        ///< Processes that the kernel killed for want of memory.
  std::uint64_t pids_refused = 0;     ///< Forks that the limit refused.
};

/// The group of one execution. One thread at a time. Going out of scope kills what is in it, and
/// removes it from the tree if it is empty. Holds a few descriptors from Attach or Renew to Rest.
class CgroupLeaf {
 public:
  virtual ~CgroupLeaf() = default;
  /// Moves a process in. Takes milliseconds when nobody has done so for a while: the kernel waits
  /// for a grace period of RCU.
  virtual Result<void> Attach(pid_t pid) = 0;
  /// Takes effect at once; what is in force already is not written again.
  virtual Result<void> Limit(const GroupLimits& limits) = 0;
  /// Nothing will run for a while: gives up the descriptors that Begin and Usage are quicker with.
  virtual void Rest() = 0;
  /// Counting starts here (or at the last Attach or Renew, if nothing began since); limits are in
  /// force by now. Precondition: nothing of an earlier execution runs in it.
  virtual Result<void> Begin() = 0;
  /// What has been counted; makes OomEvent unreadable again.
  virtual Result<GroupUsage> Usage() = 0;
  /// CPU time alone, since Begin: cheap enough to be asked for often.
  virtual Result<std::chrono::nanoseconds> CpuTime() const = 0;
  /// Anonymous memory at this moment, swapped or not: tmpfs included, page cache and what the
  /// kernel needs for itself not. Dearer than Usage. Absent: nobody counts it.
  virtual Result<std::optional<Bytes>> AnonymousMemory() const = 0;
  /// Readable once a memory limit has been met with nothing left to give up: the leaf's own or, on
  /// v1, that of a group above, so Usage has to be asked. Valid from Begin to Rest.
  /// Not valid: nothing tells, or (v2) the kernel kills the whole leaf by itself.
  virtual BorrowedFd OomEvent() const = 0;
  /// Kills every process in it at once, whatever it forks; does not wait. Does nothing where the
  /// kernel has no way to: whoever asks must have another.
  virtual void Kill() = 0;
  /// Whether another execution may use it: it is empty, and hardly anything is charged to it.
  virtual bool Reusable() const = 0;
  /// What ran in it is over, and the process that was attached is to run more: whether it may,
  /// hardly anything being charged to the leaf. If so, counting starts here, as at an Attach.
  virtual bool Renew() = 0;
};

/// What a group counts beside those next to it when there are too few processors for all.
enum class CpuWeight : bool { kUsual, kTenth };

/// The group of one sandbox. Outlives its leaves. Going out of scope removes it with all that was
/// left in it, if nothing runs there. Any thread.
class CgroupGroup {
 public:
  virtual ~CgroupGroup() = default;
  /// kUsual at first. No limit, and so no error: where there is no controller for it, or somebody
  /// has removed the group, nothing changes. Takes microseconds.
  virtual void SetWeight(CpuWeight weight) = 0;
  virtual Result<std::unique_ptr<CgroupLeaf>> MakeLeaf() = 0;
};

/// Which limits a tree can enforce.
struct CgroupControllers {
  bool memory = false;
  bool pids = false;
  bool cpu_quota = false;
  bool cpu_time = false;  ///< It counts CPU time.
  bool any() const { return memory || pids || cpu_quota || cpu_time; }
};

class CgroupTree {
 public:
  virtual ~CgroupTree() = default;
  virtual CgroupControllers controllers() const = 0;
  /// "cgroup v1" or "cgroup v2", for reports.
  virtual std::string name() const = 0;
  /// The directories that a group of that name has on the host, for whoever removes it when this
  /// process is dead. To be written down before the group is made.
  virtual std::vector<std::string> DirectoriesOf(const std::string& name) const = 0;
  /// `name` is one component of a path. CONFLICT when there is one of that name.
  virtual Result<std::unique_ptr<CgroupGroup>> MakeGroup(const std::string& name) = 0;
};

/// Why there is no tree, and the command that gives one.
struct NoCgroups {
  std::string reason;
  std::string remedy;
};

/// The best tree that this process may make groups in. Never moves this process in a way that its
/// user would notice: only where a scope was delegated to it and nobody else's processes are there,
/// it moves to a group below with all that it has started by then. `missing` says why a limit that
/// is not among its controllers is not; set even on success.
Result<std::unique_ptr<CgroupTree>> FindCgroupTree(NoCgroups& missing);

/// Removes the groups that processes left which were killed in FindCgroupTree, as far as they
/// looked where this one would. That function does so too. Best effort. Blocks.
void RemoveDeadProbes();

/// Removes groups that a dead process left: `directories` as of CgroupTree::DirectoriesOf, with
/// everything below. What runs there is killed where the kernel can kill a group; what is still in
/// use then stays, and that is an error. Only paths on a cgroup file system are touched; groups
/// that are gone already are fine. Blocks.
Result<void> RemoveCgroups(const std::vector<std::string>& directories);

}  // namespace palmshed::kernel
