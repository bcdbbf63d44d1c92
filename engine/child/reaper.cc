#include "child/reaper.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include <climits>
#include <cstdint>

#include "child/mutex.h"
#include "child/pool.h"
#include "child/raw.h"

namespace palmshed::child {
namespace {

std::uint64_t Ns(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(time.tv_usec) * 1000U;
}

Slot* OnlyLive(const Pool& pool) {
  Slot* live = nullptr;
  for (std::uint32_t i = 0; i < pool.slot_count; ++i) {
    Slot* const slot = pool.slots[i];
    if (slot->sequence == 0 && slot->given.Load() == 0) continue;
    if (live != nullptr) return nullptr;
    live = slot;
  }
  return live;
}

void Attribute(Pool* pool, const struct rusage& usage) {
  const MutexLock lock(pool->lock);
  Slot* const slot = OnlyLive(*pool);
  if (slot == nullptr) return;
  slot->orphan_cpu_ns.FetchAdd(CpuNs(usage));
  const std::uint64_t rss = MaxRssBytes(usage);
  if (rss > slot->orphan_max_rss.Load()) slot->orphan_max_rss.Store(rss);
}

}  // namespace

// Workloads are children of their slots' threads, which wait for them themselves: __WNOTHREAD.
void ReapOrphans(Pool* pool) {
  bool any = false;
  pool->reaping.Store(1);
  for (;;) {
    struct rusage usage{};
    const long pid = Call(SYS_wait4, -1, nullptr, WNOHANG | __WALL | __WNOTHREAD, &usage);
    if (pid <= 0) break;
    any = true;
    Attribute(pool, usage);
  }
  pool->reaping.Store(0);
  FutexWake(pool->reaping, INT_MAX);
  if (!any) return;
  pool->reaped.FetchAdd(1);
  FutexWake(pool->reaped, INT_MAX);
  for (std::uint32_t i = 0; i < pool->slot_count; ++i) {
    if (pool->slots[i]->lingers.Load()) Ring(pool->slots[i]->orders);
  }
}

std::uint64_t CpuNs(const struct rusage& usage) { return Ns(usage.ru_utime) + Ns(usage.ru_stime); }

std::uint64_t MaxRssBytes(const struct rusage& usage) {
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024U;
}

}  // namespace palmshed::child
