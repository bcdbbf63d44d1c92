// How the processes of one execution are told from those of another. With a signal scope the kernel
// does it: kill(2) from the slot's thread fails with EPERM for all but its own. Without, each
// workload gets a hard RLIMIT_RTTIME of its own number, which its children inherit and which nobody
// without privilege can raise; it limits real-time scheduling only, which workloads don't have. A
// process could lower its mark to that of a later execution and would then end with that one:
// executions of a sandbox are one trust domain. A mark that belongs to no execution is ended by
// the next one that ends.
#include "child/leftovers.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <initializer_list>

#include "child/mutex.h"
#include "child/pool.h"
#include "child/processes.h"
#include "child/raw.h"

namespace palmshed::child {
namespace {

constexpr std::uint64_t kReapTimeoutNs = 20'000'000;  // A net under the main thread's wake-ups.
constexpr int kStopRounds = 16;

enum class Owner : std::uint8_t { kOurs, kOthers, kUnknown };

// ---- whose a process is

bool IsMarkOfLive(const Pool& pool, std::uint64_t mark) {
  for (std::uint32_t i = 0; i < pool.slot_count; ++i) {
    const Slot& slot = *pool.slots[i];
    // What a bearer has got is marked before its slot knows of it.
    for (const std::uint32_t sequence : {slot.sequence, slot.given.Load()}) {
      if (sequence != 0 && pool.first_mark + sequence == mark) return true;
    }
  }
  return false;
}

Owner OwnerByMark(const Slot& slot, int pid) {
  rlimit mark{};
  if (Call(SYS_prlimit64, pid, RLIMIT_RTTIME, nullptr, &mark) < 0) return Owner::kOthers;
  if (mark.rlim_max == slot.plan.mark || pid == slot.borne_pid.Load()) return Owner::kOurs;
  // A workload before its marking.
  if (mark.rlim_max == slot.pool->unmarked) return Owner::kOthers;
  const MutexLock lock(slot.pool->lock);
  return IsMarkOfLive(*slot.pool, mark.rlim_max) ? Owner::kOthers : Owner::kUnknown;
}

// tgkill, not kill: a slot's thread has a number of its own too, but it leads no process.
Owner OwnerOf(const Slot& slot, int pid) {
  const bool reachable = Call(SYS_tgkill, pid, pid, 0) >= 0;
  if (!reachable) return Owner::kOthers;
  return slot.pool->signal_scope ? Owner::kOurs : OwnerByMark(slot, pid);
}

bool EndsWith(const Slot& slot, int pid) { return OwnerOf(slot, pid) != Owner::kOthers; }

// An orphan that has ended and waits for the main thread. One whose parent lives is not ours to
// ask, but then the parent runs.
bool HasEndedAlready(int pid) {
  siginfo_t info{};
  const long known =
      Call(SYS_waitid, P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL, nullptr);
  return known >= 0 && info.si_pid == pid;
}

struct Census {
  bool any = false;
  bool running = false;
};

Census Count(const Slot& slot) {
  Census census;
  ProcessWalk walk(slot.pool);
  for (int pid = walk.Next(); pid != 0 && !census.running; pid = walk.Next()) {
    if (pid == slot.bearer_pid || !EndsWith(slot, pid)) continue;
    census.any = true;
    census.running = !HasEndedAlready(pid);
  }
  return census;
}

// ---- signals

// While nothing else is live, everything is this execution's; the lock keeps others from starting.
bool SignalWhenAlone(const Slot& slot, int signal) {
  const MutexLock lock(slot.pool->lock);
  if (slot.pool->live != 1 || slot.pool->waiting != 0) return false;
  (void)Call(SYS_kill, -1, signal);
  return true;
}

// How many were signalled.
int SignalMarked(const Slot& slot, int signal, bool unknown_too) {
  int count = 0;
  ProcessWalk walk(slot.pool);
  for (int pid = walk.Next(); pid != 0; pid = walk.Next()) {
    const Owner owner = OwnerOf(slot, pid);
    if (owner == Owner::kOthers || (owner == Owner::kUnknown && !unknown_too)) continue;
    (void)Call(SYS_kill, pid, signal);
    ++count;
  }
  return count;
}

// Stopped processes cannot fork, so once two walks in a row meet as many, all have been met.
void KillMarked(const Slot& slot) {
  int before = -1;
  for (int round = 0; round < kStopRounds; ++round) {
    const int met = SignalMarked(slot, SIGSTOP, true);
    if (met == before) break;
    before = met;
  }
  (void)SignalMarked(slot, SIGKILL, true);
}

// A bearer is in the scope of what it bears.
void SignalScope(Slot* slot, int signal) {
  if (signal == SIGKILL) slot->bearer_killed = true;
  (void)Call(SYS_kill, -1, signal);
}

void KillAll(Slot* slot) {
  if (slot->pool->signal_scope) {
    SignalScope(slot, SIGKILL);
  } else if (!SignalWhenAlone(*slot, SIGKILL)) {
    KillMarked(*slot);
  }
}

// No child of any thread of init means no process at all but init.
bool IsNamespaceEmpty() {
  siginfo_t info{};
  return Call(SYS_waitid, P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL, nullptr) ==
         -ECHILD;
}

// What an ended execution leaves has lost its parent, and is a child of init's main thread or below
// one (proc_pid_children(5)); workloads and armed children are those of slots. False: not known.
bool HasNoOrphans(const Pool& pool) {
  if (pool.orphans < 0) return false;
  char one;
  return Call(SYS_pread64, pool.orphans, &one, sizeof one, 0) == 0;
}

}  // namespace

void SignalAll(Slot* slot, int signal) {
  if (slot->pool->signal_scope) {
    SignalScope(slot, signal);
  } else if (!SignalWhenAlone(*slot, signal)) {
    (void)SignalMarked(*slot, signal, false);
  }
}

bool HasLeftovers(const Slot& slot) {
  return !IsNamespaceEmpty() && !HasNoOrphans(*slot.pool) && Count(slot).running;
}

// Whoever is the last has no parent left but init, whose main thread tells of each that it reaps.
void AwaitLeftovers(Slot* slot) {
  slot->lingers.Store(true);
  while (HasLeftovers(*slot)) {
    pollfd watched{slot->orders, POLLIN, 0};
    (void)Poll(&watched, 1, kNoTimeout);
    ObeyOrders(slot);
  }
  slot->lingers.Store(false);
}

// The census that finds nobody always comes after a kill: kill(-1) cannot be outrun by a fork,
// a walk can.
bool KillLeftovers(Slot* slot) {
  Pool* const pool = slot->pool;
  bool running = false;
  if (!IsNamespaceEmpty() && !HasNoOrphans(*pool)) {
    running = Count(*slot).running;
    for (;;) {
      const std::uint32_t reaped = pool->reaped.Load();
      KillAll(slot);
      if (!Count(*slot).any) break;
      FutexWait(pool->reaped, reaped, kReapTimeoutNs);
    }
  }
  // Gone does not mean counted.
  while (pool->reaping.Load() != 0) FutexWait(pool->reaping, 1);
  return running;
}

}  // namespace palmshed::child
