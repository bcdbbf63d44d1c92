#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "child/bearer.h"
#include "child/failure.h"
#include "child/host_pids.h"
#include "child/mutex.h"
#include "child/pool.h"
#include "child/raw.h"
#include "child/wire.h"

namespace palmshed::child {
namespace {

// From below: a guard page, the child's stack, a guard page, the thread's stack, the slot. A bearer
// has a copy of the stacks: it runs on the child's, and what it bears on the thread's.
constexpr std::size_t kPage = 4096;
constexpr std::size_t kChildStack = 4 * kPage;
constexpr std::size_t kThreadStack = 8 * kPage;
constexpr std::size_t kSlotPages = (sizeof(Slot) + kPage - 1) / kPage * kPage;
constexpr std::size_t kBelowSlot = kPage + kChildStack + kPage + kThreadStack;

// ---- the thread

Failure EnterSignalScope(const Pool& pool) {
  if (!pool.signal_scope) return kSuccess;
  const long entered = Call(SYS_landlock_restrict_self, pool.scope_ruleset, 0);
  return entered < 0 ? FailureIf(entered, Step::kSignalScope) : ProveSignalScope(pool);
}

void SetServing(Slot* slot, bool serving) {
  const MutexLock lock(slot->pool->lock);
  slot->serving = serving;
}

// False when enough slots wait already.
bool TakeLead(Slot* slot) {
  Pool* const pool = slot->pool;
  {
    const MutexLock lock(pool->lock);
    if (!pool->led) {
      pool->led = true;
      return true;
    }
    slot->serving = pool->idle < Pool::kMaxIdle;
    if (!slot->serving) return false;
    ++pool->idle;
    if (pool->led_by_main) NotifyMain(*pool);
  }
  for (;;) {
    const std::uint32_t batons = pool->baton.Load();
    if (batons == 0) {
      FutexWait(pool->baton, 0);
    } else if (pool->baton.CompareExchange(batons, batons - 1)) {
      return true;
    }
  }
}

// Its memory is kept for the next thread, its pages are given back.
[[noreturn]] void Retire(Slot* slot) {
  Close(slot->orders);
  (void)Call(SYS_madvise, slot->child_stack_top - kChildStack, kChildStack, MADV_DONTNEED);
  for (;;) Call(SYS_exit, 0);
}

void RunSlot(void* argument) {
  auto* const slot = static_cast<Slot*>(argument);
  slot->enter_failure = EnterSignalScope(*slot->pool);
  const bool entered = !slot->enter_failure.failed();
  if (!entered) SetServing(slot, false);
  slot->entered.Store(1);
  FutexWake(slot->entered, 1);
  while (entered && TakeLead(slot)) {
    Lead(slot);
    if (!PassLead(slot->pool)) NotifyMain(*slot->pool);
    if (slot->bears) {
      Bear(slot);
    } else {
      RunExecution(slot);
    }
  }
  Retire(slot);
}

// ---- its making

Slot* FindRetired(const Pool& pool) {
  for (std::uint32_t i = 0; i < pool.slot_count; ++i) {
    if (pool.slots[i]->thread.Load() == 0) return pool.slots[i];
  }
  return nullptr;
}

Failure MapSlot(Pool* pool, Slot** slot) {
  if (pool->slot_count == Pool::kMaxSlots) return {Step::kThread, EAGAIN};
  const long base = Call(SYS_mmap, nullptr, kBelowSlot + kSlotPages, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base < 0) return FailureIf(base, Step::kThread);
  auto* const bytes = static_cast<char*>(AddressIn(base));
  const long shared = Call(SYS_mmap, bytes + kBelowSlot, kSlotPages, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (shared < 0) {
    (void)Call(SYS_munmap, bytes, kBelowSlot + kSlotPages);
    return FailureIf(shared, Step::kThread);
  }
  (void)Call(SYS_mprotect, bytes, kPage, PROT_NONE);
  (void)Call(SYS_mprotect, bytes + kPage + kChildStack, kPage, PROT_NONE);
  *slot = reinterpret_cast<Slot*>(bytes + kBelowSlot);
  (*slot)->pool = pool;
  (*slot)->child_stack_top = bytes + kPage + kChildStack;
  (*slot)->stack_top = bytes + kBelowSlot;
  const MutexLock lock(pool->lock);
  pool->slots[pool->slot_count++] = *slot;
  return kSuccess;
}

Failure StartThread(Slot* slot) {
  constexpr unsigned long kFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                                   CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
  slot->entered.Store(0);
  slot->thread.Store(1);
  SetServing(slot, true);
  const long tid =
      PalmshedCloneOnStack(kFlags, slot->stack_top, nullptr, slot->thread.address(), RunSlot, slot);
  if (tid < 0) {
    SetServing(slot, false);
    slot->thread.Store(0);
    Close(slot->orders);
    return FailureIf(tid, Step::kThread);
  }
  return kSuccess;
}

}  // namespace

void NotifyMain(const Pool& pool) {
  const std::uint64_t one = 1;
  (void)Call(SYS_write, pool.requests_to_main, &one, sizeof one);
}

bool IsSlotComing(const Pool& pool) {
  for (std::uint32_t i = 0; i < pool.slot_count; ++i) {
    const Slot& slot = *pool.slots[i];
    if (slot.serving && slot.sequence == 0 && slot.armed == 0) return true;
  }
  return false;
}

bool PassLead(Pool* pool) {
  {
    const MutexLock lock(pool->lock);
    pool->led_by_main = false;
    if (pool->idle == 0) {
      pool->led = false;
      return false;
    }
    --pool->idle;
    pool->baton.FetchAdd(1);
  }
  FutexWake(pool->baton, 1);
  return true;
}

Failure StartSlot(Pool* pool, Slot** started) {
  Slot* slot = FindRetired(*pool);
  if (slot == nullptr) {
    const Failure mapped = MapSlot(pool, &slot);
    if (mapped.failed()) return mapped;
  }
  const long orders = Call(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (orders < 0) return FailureIf(orders, Step::kThread);
  slot->orders = static_cast<int>(orders);
  *started = slot;
  return StartThread(slot);
}

Failure AwaitSlot(const Slot& slot) {
  while (slot.entered.Load() == 0) FutexWait(slot.entered, 0);
  return slot.enter_failure;
}

Failure CreateSlot(Pool* pool) {
  Slot* slot = nullptr;
  const Failure started = StartSlot(pool, &slot);
  return started.failed() ? started : AwaitSlot(*slot);
}

}  // namespace palmshed::child
