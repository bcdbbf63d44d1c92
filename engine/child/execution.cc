// One execution, from its registration to the answer that it has ended.
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdint>

#include "child/armed.h"
#include "child/bearer.h"
#include "child/failure.h"
#include "child/leftovers.h"
#include "child/mutex.h"
#include "child/payload.h"
#include "child/pool.h"
#include "child/raw.h"
#include "child/reaper.h"
#include "child/terminal.h"
#include "child/wire.h"
#include "child/workload.h"

namespace palmshed::child {
namespace {

// Sent to all, they are meant to end the execution.
constexpr std::uint64_t kEnding =
    (std::uint64_t{1} << (SIGTERM - 1)) | (std::uint64_t{1} << (SIGKILL - 1));

// ---- start

TerminalPlan TerminalOf(const Slot& slot) {
  return {.asked = (slot.request.flags & kExecTerminal) != 0,
          .engine = slot.fds[0],
          .rows = slot.request.terminal_rows,
          .columns = slot.request.terminal_columns};
}

void FillPlan(Slot* slot) {
  const Payload& payload = slot->payload;
  const bool has_stdin = (slot->request.flags & kExecStdin) != 0;
  const int first = has_stdin ? 1 : 0;
  const Pool& pool = *slot->pool;
  const int null = slot->bears ? kBorneNull : pool.null;
  slot->plan = {.stdio = {has_stdin ? slot->fds[0] : null, slot->fds[first], slot->fds[first + 1]},
                .terminal = TerminalOf(*slot),
                .settled = slot->bears,
                .rlimit_count = pool.rlimit_count,
                .rlimits = pool.rlimits,
                .file_bytes = slot->request.file_bytes,
                .cpu_seconds = slot->request.cpu_seconds,
                .processes = slot->request.processes,
                .mark = pool.signal_scope ? 0 : pool.first_mark + slot->request.sequence,
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

// As of wait(2).
int WaitStatusOf(const siginfo_t& info) {
  constexpr int kCoreDumped = 0x80;
  if (info.si_code == CLD_EXITED) return (info.si_status & 0xff) << 8;
  return info.si_code == CLD_DUMPED ? info.si_status | kCoreDumped : info.si_status;
}

// Sleeps in vfork until the program runs or could not be started.
Failure Vfork(Slot* slot) {
  constexpr unsigned long kFlags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD;
  const long pid = PalmshedCloneOnStack(kFlags, slot->child_stack_top, slot->pidfd.address(),
                                        nullptr, BecomeWorkloadInChild, &slot->plan);
  EndStarting(slot);
  if (pid < 0) return FailureIf(pid, Step::kClone);
  if (!slot->plan.failure.failed()) return kSuccess;
  Reap(slot->pidfd.Load(), nullptr, nullptr);
  Close(slot->pidfd.Load());
  return slot->plan.failure;
}

Failure Start(Slot* slot, InitReply* reply) {
  Failure failure = PrepareWorkload(slot);
  reply->stamps[kStampPrepared] = NowNs();
  if (failure.failed()) {
    EndStarting(slot);
  } else {
    failure = Vfork(slot);
  }
  return failure;
}

// ---- life

void WaitForMain(Slot* slot) {
  for (;;) {
    pollfd watched[] = {{slot->pidfd.Load(), POLLIN, 0}, {slot->orders, POLLIN, 0}};
    (void)Poll(watched, 2, kNoTimeout);
    if (watched[1].revents != 0) ObeyOrders(slot);
    if (watched[0].revents != 0) return;
  }
}

// ---- end

void SayWhyNot(const Failure& failure, InitReply* reply) {
  reply->kind = EndKind::kStartupFailed;
  reply->step = failure.step;
  reply->sys_errno = failure.sys_errno;
  reply->detail = failure.detail;
}

// Of the main process, and of the orphans as far as they are known.
void SayUsage(const Slot& slot, InitReply* reply) {
  const std::uint64_t orphan_rss = slot.orphan_max_rss.Load();
  reply->cpu_ns = slot.main_cpu_ns + slot.orphan_cpu_ns.Load();
  reply->max_rss_bytes = slot.main_max_rss > orphan_rss ? slot.main_max_rss : orphan_rss;
}

void EndWithAll(Slot* slot, InitReply* reply) {
  reply->killed_leftovers = KillLeftovers(slot) ? 1 : 0;
  SayUsage(*slot, reply);
}

// Whoever ends an execution ends all of it.
bool Detaches(const Slot& slot) {
  const ExecRequest& request = slot.request;
  const bool wanted = (request.flags & kExecDetach) != 0 && slot.told_to_end != request.sequence;
  return wanted && HasLeftovers(slot);
}

void FollowToEnd(Slot* slot, InitReply* reply) {
  reply->kind = EndKind::kExited;
  WaitForMain(slot);
  struct rusage usage{};
  slot->borne_pid.Store(0);  // The number may be somebody else's as soon as it is reaped.
  Reap(slot->pidfd.Load(), &reply->wait_status, &usage);
  Close(slot->pidfd.Exchange(-1));
  // Of what a bearer bore it is known only now that it did not come to its program.
  if (slot->plan.failure.failed()) {
    reply->stamps[kStampExecuted] = NowNs();
    return SayWhyNot(slot->plan.failure, reply);
  }
  slot->main_cpu_ns = CpuNs(usage);
  slot->main_max_rss = MaxRssBytes(usage);
  if ((slot->request.flags & kExecWait) != 0) AwaitLeftovers(slot);
  reply->stamps[kStampReaped] = NowNs();
  if (Detaches(*slot)) {
    reply->left_running = 1;
    SayUsage(*slot, reply);
  } else {
    EndWithAll(slot, reply);
  }
  reply->stamps[kStampCleared] = NowNs();
}

}  // namespace

void Reap(int pidfd, int* status, struct rusage* usage) {
  siginfo_t info{};
  while (Call(SYS_waitid, P_PIDFD, pidfd, &info, WEXITED | __WALL | __WNOTHREAD, usage) == -EINTR) {
  }
  if (status != nullptr) *status = WaitStatusOf(info);
}

void Ring(int orders) {
  const std::uint64_t one = 1;
  (void)Call(SYS_write, orders, &one, sizeof one);
}

void ObeyOrders(Slot* slot) {
  std::uint64_t rung;
  (void)Call(SYS_read, slot->orders, &rung, sizeof rung);
  const std::uint64_t all = slot->all_orders.Exchange(0);
  const std::uint64_t main = slot->main_orders.Exchange(0);
  if ((all & kEnding) != 0) slot->told_to_end = slot->request.sequence;
  for (int signal = 1; signal <= 64; ++signal) {
    const std::uint64_t bit = std::uint64_t{1} << (signal - 1);
    if ((all & bit) != 0) SignalAll(slot, signal);
    if ((main & bit) != 0 && slot->pidfd.Load() >= 0) {
      (void)Call(SYS_pidfd_send_signal, slot->pidfd.Load(), signal, nullptr, 0);
    }
  }
}

Failure PrepareWorkload(Slot* slot) {
  // What /dev/pts is there is the host's.
  const bool own_terminals = !slot->pool->host_pids;
  if ((slot->request.flags & kExecTerminal) != 0 && !own_terminals) {
    return {Step::kTerminal, ENODEV};
  }
  const bool in_file = (slot->request.flags & kExecPayloadInFile) != 0;
  const int file = in_file ? slot->fds[slot->fd_count - 1] : -1;
  const Failure failure =
      slot->payload.Open(slot->request, slot->message + sizeof(ExecRequest), file, &slot->pointers);
  if (!failure.failed()) FillPlan(slot);
  return failure;
}

void CarryToEnd(Slot* slot, const Failure& failure, InitReply* reply) {
  reply->answer = InitAnswer::kEnded;
  reply->sequence = slot->sequence;
  reply->stamps[kStampReceived] = slot->received_ns;
  if (failure.failed()) {
    SayWhyNot(failure, reply);
  } else {
    FollowToEnd(slot, reply);
  }
}

void CarryDetached(Slot* slot, InitReply* reply) {
  if (reply->left_running == 0) return;
  SendEnd(*reply);
  AwaitLeftovers(slot);
  reply->left_running = 0;
  EndWithAll(slot, reply);
}

// Afterwards no order can arrive any more; one that has must not reach the next execution.
void Conclude(Slot* slot, const InitReply& reply, int fd) {
  {
    const MutexLock lock(slot->pool->lock);
    slot->sequence = 0;
    --slot->pool->live;
    slot->orphan_cpu_ns.Store(0);
    slot->orphan_max_rss.Store(0);
    std::uint64_t rung;
    (void)Call(SYS_read, slot->orders, &rung, sizeof rung);
  }
  SendEnd(reply, fd);
}

void RunExecution(Slot* slot) {
  InitReply reply{};
  Failure failure;
  if (slot->arming == 0) {
    failure = Start(slot, &reply);
  } else if (!AwaitProgram(slot, &failure)) {
    return;
  }
  slot->payload.Close();
  reply.stamps[kStampExecuted] = NowNs();
  CloseFds(slot);
  CarryToEnd(slot, failure, &reply);
  CarryDetached(slot, &reply);
  Conclude(slot, reply);
}

}  // namespace palmshed::child
