// One execution, from its registration to the answer that it has ended.
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdint>

#include "child/failure.h"
#include "child/leftovers.h"
#include "child/mutex.h"
#include "child/payload.h"
#include "child/pool.h"
#include "child/raw.h"
#include "child/reaper.h"
#include "child/wire.h"
#include "child/workload.h"

namespace palmshed::child {
namespace {

// ---- start

void FillPlan(Slot* slot, const Payload& payload) {
  const bool has_stdin = (slot->request.flags & kExecStdin) != 0;
  const int first = has_stdin ? 1 : 0;
  const Pool& pool = *slot->pool;
  slot->plan = {
      .stdio = {has_stdin ? slot->fds[0] : pool.null, slot->fds[first], slot->fds[first + 1]},
      .rlimit_count = pool.rlimit_count,
      .rlimits = pool.rlimits,
      .mark = pool.signal_scope ? 0 : pool.first_mark + slot->sequence,
      .directory = payload.directory(),
      .paths = payload.paths(),
      .path_count = slot->request.paths,
      .arguments = payload.arguments(),
      .environment = payload.environment(),
      .failure = kSuccess};
}

void CloseFds(Slot* slot) {
  for (int i = 0; i < slot->fd_count; ++i) Close(slot->fds[i]);
  slot->fd_count = 0;
}

void EndStarting(Slot* slot) {
  const MutexLock lock(slot->pool->lock);
  slot->starting = false;
}

void Reap(const Slot& slot, int* status, struct rusage* usage) {
  while (Call(SYS_wait4, slot.pid, status, __WALL | __WNOTHREAD, usage) == -EINTR) {
  }
}

// Sleeps in vfork until the program runs or could not be started.
Failure Vfork(Slot* slot) {
  constexpr unsigned long kFlags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD;
  const long pid = PalmshedCloneOnStack(kFlags, slot->child_stack_top, slot->pidfd.address(),
                                        nullptr, BecomeWorkloadInChild, &slot->plan);
  EndStarting(slot);
  if (pid < 0) return FailureIf(pid, Step::kClone);
  slot->pid = static_cast<int>(pid);
  if (!slot->plan.failure.failed()) return kSuccess;
  Reap(*slot, nullptr, nullptr);
  Close(slot->pidfd.Load());
  return slot->plan.failure;
}

Failure Start(Slot* slot, InitReply* reply) {
  const bool in_file = (slot->request.flags & kExecPayloadInFile) != 0;
  Payload payload;
  Failure failure = payload.Open(slot->request, slot->message + sizeof(ExecRequest),
                                 in_file ? slot->fds[slot->fd_count - 1] : -1, &slot->pointers);
  reply->stamps[1] = NowNs();
  if (failure.failed()) {
    EndStarting(slot);
  } else {
    FillPlan(slot, payload);
    failure = Vfork(slot);
  }
  reply->stamps[2] = NowNs();
  CloseFds(slot);
  return failure;
}

// ---- life

void ObeyOrders(Slot* slot) {
  std::uint64_t rung;
  (void)Call(SYS_read, slot->orders, &rung, sizeof rung);
  const std::uint64_t all = slot->all_orders.Exchange(0);
  const std::uint64_t main = slot->main_orders.Exchange(0);
  for (int signal = 1; signal <= 64; ++signal) {
    const std::uint64_t bit = std::uint64_t{1} << (signal - 1);
    if ((all & bit) != 0) SignalAll(*slot, signal);
    if ((main & bit) != 0) {
      (void)Call(SYS_pidfd_send_signal, slot->pidfd.Load(), signal, nullptr, 0);
    }
  }
}

void WaitForMain(Slot* slot) {
  for (;;) {
    pollfd watched[] = {{slot->pidfd.Load(), POLLIN, 0}, {slot->orders, POLLIN, 0}};
    (void)Poll(watched, 2, kNoTimeout);
    if (watched[1].revents != 0) ObeyOrders(slot);
    if (watched[0].revents != 0) return;
  }
}

// ---- end

void FollowToEnd(Slot* slot, InitReply* reply) {
  reply->kind = EndKind::kExited;
  reply->started_ns = reply->stamps[2];
  WaitForMain(slot);
  struct rusage usage{};
  Reap(*slot, &reply->wait_status, &usage);
  Close(slot->pidfd.Load());
  reply->ended_ns = NowNs();
  reply->stamps[3] = reply->ended_ns;
  reply->killed_leftovers = KillLeftovers(*slot) ? 1 : 0;
  reply->stamps[4] = NowNs();
  reply->cpu_ns = CpuNs(usage) + slot->orphan_cpu_ns.Load();
  const std::uint64_t own_rss = MaxRssBytes(usage);
  const std::uint64_t orphan_rss = slot->orphan_max_rss.Load();
  reply->max_rss_bytes = own_rss > orphan_rss ? own_rss : orphan_rss;
}

// Afterwards no order can arrive any more; one that has must not reach the next execution.
void Unregister(Slot* slot) {
  const MutexLock lock(slot->pool->lock);
  slot->sequence = 0;
  --slot->pool->live;
  std::uint64_t rung;
  (void)Call(SYS_read, slot->orders, &rung, sizeof rung);
}

}  // namespace

void RunExecution(Slot* slot) {
  InitReply reply{};
  reply.answer = InitAnswer::kEnded;
  reply.sequence = slot->sequence;
  reply.stamps[0] = slot->received_ns;
  const Failure failure = Start(slot, &reply);
  if (failure.failed()) {
    reply.kind = EndKind::kStartupFailed;
    reply.step = failure.step;
    reply.sys_errno = failure.sys_errno;
    reply.detail = failure.detail;
  } else {
    FollowToEnd(slot, &reply);
  }
  Unregister(slot);
  SendEnd(reply);
}

}  // namespace palmshed::child
