#include "child/bearer.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "child/armed.h"
#include "child/failure.h"
#include "child/message.h"
#include "child/mutex.h"
#include "child/payload.h"
#include "child/pool.h"
#include "child/raw.h"
#include "child/wire.h"
#include "child/workload.h"

namespace palmshed::child {
namespace {

// Descriptors of what is borne, until its program.
constexpr int kRequests = 3;
constexpr int kOrders = 4;
constexpr int kFirstFree = kBorneNull + 1;

// ---- in what is borne, in the bearer's memory

// They are copied out of each other's way first.
Failure KeepDescriptors(const Slot& slot) {
  long copies[3] = {slot.at_bearer, slot.orders, slot.pool->null};
  for (long& copy : copies) {
    copy = Duplicate(static_cast<int>(copy), kFirstFree);
    if (copy < 0) return FailureIf(copy, Step::kStdio);
  }
  for (int i = 0; i < 3; ++i) {
    const long kept = Call(SYS_dup3, copies[i], kRequests + i, O_CLOEXEC);
    if (kept < 0) return FailureIf(kept, Step::kStdio);
  }
  return FailureIf(Call(SYS_close_range, kFirstFree, ~0U, 0), Step::kStdio);
}

Failure LeaveBearer(const Slot& slot) {
  const Pool& pool = *slot.pool;
  if (pool.signal_scope) {
    const long entered = Call(SYS_landlock_restrict_self, pool.scope_ruleset, 0);
    if (entered < 0) return FailureIf(entered, Step::kSignalScope);
  }
  return SettleWorkload(pool.rlimits, pool.rlimit_count);
}

// The request counts as given even when it is refused.
Failure TakeRequest(Slot* slot, const Message& message) {
  slot->received_ns = NowNs();
  slot->prepared_ns = slot->received_ns;
  ExecRequest request{};
  if (message.size >= static_cast<long>(sizeof request)) {
    std::memcpy(&request, slot->message, sizeof request);
  }
  KeepRequest(slot, request, message);
  slot->given.Store(request.sequence);
  return CheckExec(request, message);
}

bool HasOrders(const Slot& slot) {
  return slot.all_orders.Load() != 0 || slot.main_orders.Load() != 0;
}

void WaitForProgram(void* shared) {
  auto* const slot = static_cast<Slot*>(shared);
  slot->plan.failure = kSuccess;  // Should it be killed before it can tell.
  slot->borne_pid.Store(static_cast<int>(Call(SYS_getpid)));
  slot->born.Store(true);
  TellBirth(slot, kThere);
  Ring(slot->orders);
  slot->told_of.Store(true);
  Failure failure = LeaveBearer(*slot);
  if (KeepDescriptors(*slot).failed()) ExitGroup(0);
  const Message message = ReceiveMessage(kRequests, slot->message, kMaxMessage);
  if (message.gone()) ExitGroup(0);
  const Failure refused = TakeRequest(slot, message);
  if (HasOrders(*slot)) Ring(kOrders);
  if (!failure.failed()) failure = refused;
  if (!failure.failed()) failure = PrepareWorkload(slot);
  slot->prepared_ns = NowNs();
  slot->plan.failure = failure;
  if (failure.failed()) ExitGroup(127);
  BecomeWorkloadInChild(&slot->plan);
}

// ---- in the bearer

// Returns when there is a program, or will be none.
Failure BearOne(Slot* slot) {
  constexpr unsigned long kFlags = CLONE_VM | CLONE_VFORK | CLONE_PARENT | CLONE_PIDFD | SIGCHLD;
  slot->told_of.Store(false);
  // The stack is that of the slot's thread, which has its own.
  const long pid = PalmshedCloneOnStack(kFlags, slot->stack_top, slot->pidfd.address(), nullptr,
                                        WaitForProgram, slot);
  slot->payload.Close();
  if (pid >= 0 && !slot->told_of.Load()) {  // It was killed before it could.
    slot->born.Store(true);
    Ring(slot->orders);
  }
  return FailureIf(pid, Step::kClone);
}

// There is a request, and nothing could be borne for it.
void Refuse(Slot* slot, const Failure& failure) {
  Message message = ReceiveMessage(slot->at_bearer, slot->message, kMaxMessage);
  if (message.gone()) ExitGroup(0);
  (void)TakeRequest(slot, message);
  message.CloseFds();
  slot->plan.failure = failure;
  slot->unborn.Store(true);
  Ring(slot->orders);
}

// Signals that are meant for what it bears do not end it.
void RunBearer(void* shared) {
  auto* const slot = static_cast<Slot*>(shared);
  const std::uint64_t all_signals = ~std::uint64_t{0};
  (void)Call(SYS_rt_sigprocmask, SIG_SETMASK, &all_signals, nullptr, sizeof all_signals);
  // By itself: what it has used until now is not charged to the leaf.
  SendArmed(slot->arming, slot->bearer.Load(), slot->to_bearer);
  bool ahead = slot->at_once;
  if (!ahead) TellBirth(slot, kNobody);
  for (;;) {
    // With the request the bearer is where the limits hold, and what it bears with it.
    if (!ahead) AwaitReadable(slot->at_bearer);
    const Failure failure = BearOne(slot);
    if (failure.failed() && ahead) {
      ahead = false;  // The limits of the next one may leave it more room.
      TellBirth(slot, kNobody);
      continue;
    }
    if (failure.failed()) Refuse(slot, failure);
    while (slot->told.Exchange(0) == 0) FutexWait(slot->told, 0);
    ahead = true;
  }
}

// ---- in the slot's thread

// Of what the slot carried before.
void ForgetOrders(Slot* slot) {
  const MutexLock lock(slot->pool->lock);
  slot->ordered = 0;
  slot->concluded = 0;
  slot->main_orders.Store(0);
  slot->all_orders.Store(0);
  slot->passed_on = false;
}

Failure MakeBearer(Slot* slot) {
  constexpr unsigned long kFlags = CLONE_FILES | CLONE_PIDFD | SIGCHLD;
  int ends[2];
  const long paired = Call(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
  if (paired < 0) return FailureIf(paired, Step::kArm);
  slot->to_bearer = ends[0];
  slot->at_bearer = ends[1];
  slot->given.Store(0);
  slot->born.Store(false);
  slot->unborn.Store(false);
  ForgetOrders(slot);
  slot->bearer_killed = false;
  const long pid = PalmshedCloneOnStack(kFlags, slot->child_stack_top, slot->bearer.address(),
                                        nullptr, RunBearer, slot);
  if (pid >= 0) {
    slot->bearer_pid = static_cast<int>(pid);
    return kSuccess;
  }
  Close(ends[0]);
  Close(ends[1]);
  return FailureIf(pid, Step::kArm);
}

// No request reaches it any more by way of init.
void Unlist(Slot* slot) {
  const MutexLock lock(slot->pool->lock);
  if (slot->armed != 0) --slot->pool->waiting;
  slot->armed = 0;
}

void EndBearer(Slot* slot) {
  const int bearer = slot->bearer.Load();
  (void)Call(SYS_pidfd_send_signal, bearer, SIGKILL, nullptr, 0);
  Reap(bearer, nullptr, nullptr);
  Close(bearer);
  slot->bearer_pid = 0;
  TellBirth(slot, kNobody);
  slot->payload.Forget();  // It was in the memory of the dead.
  // With what was sent and never received.
  Close(slot->at_bearer);
  Close(slot->to_bearer);
}

bool HasDied(const Slot& slot) {
  pollfd watched{slot.bearer.Load(), POLLIN, 0};
  return Poll(&watched, 1, 0) != 0;
}

bool MayBearAgain(const Slot& slot) {
  const bool safe = slot.pool->signal_scope && !slot.pool->host_pids;
  return safe && !slot.bearer_killed && !HasDied(slot);
}

// Nobody wants it any more, or what it would bear next.
bool IsToEnd(const Slot& slot) {
  constexpr std::uint64_t kKill = std::uint64_t{1} << (SIGKILL - 1);
  const MutexLock lock(slot.pool->lock);
  if (slot.armed == 0) return true;
  const bool killed = ((slot.all_orders.Load() | slot.main_orders.Load()) & kKill) != 0;
  return killed && slot.given.Load() == 0 && slot.ordered > slot.concluded;
}

// Orders for what has been given are carried out; those for what is still on its way stay.
void ObeyIfGiven(Slot* slot) {
  {
    const MutexLock lock(slot->pool->lock);
    const std::uint32_t given = slot->given.Load();
    if (given == 0 || given != slot->ordered) return;
  }
  ObeyOrders(slot);
}

void RegisterGiven(Slot* slot) {
  const MutexLock lock(slot->pool->lock);
  RegisterLocked(slot);
  slot->starting = false;  // The thread does not sleep in vfork: it looks at its orders.
}

// `socket` goes with the answer, unless it is negative.
void ConcludeGiven(Slot* slot, const InitReply& reply, int socket) {
  {
    const MutexLock lock(slot->pool->lock);
    slot->concluded = reply.sequence;
  }
  slot->given.Store(0);
  Conclude(slot, reply, socket);
}

// A request that came by way of init: the engine has given up the bearer's socket. The next
// execution may follow soon.
int SocketToGiveBack(Slot* slot) {
  const MutexLock lock(slot->pool->lock);
  if (!slot->passed_on) return -1;
  slot->passed_on = false;
  return slot->to_bearer;
}

// What was given is over or, with a `failure`, never began. False: the bearer has to go too.
bool CarryGiven(Slot* slot, const Failure& failure) {
  InitReply reply{};
  RegisterGiven(slot);
  reply.stamps[kStampPrepared] = slot->prepared_ns;
  CarryToEnd(slot, failure, &reply);
  // Where something is left running nothing else may be borne.
  if (reply.left_running != 0 || !MayBearAgain(*slot)) {
    // Before the answer: the engine finds the leaf empty.
    Unlist(slot);
    EndBearer(slot);
    CarryDetached(slot, &reply);
    ConcludeGiven(slot, reply, -1);
    return false;
  }
  reply.waits_again = 1;
  slot->birth.Store(kComing);
  ConcludeGiven(slot, reply, SocketToGiveBack(slot));
  slot->told.Store(1);
  FutexWake(slot->told, 1);
  return true;
}

// After the bearer's end: the pidfd alone does not tell, a clone that fails may have left a number.
bool HasChild() {
  siginfo_t info{};
  return Call(SYS_waitid, P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL | __WNOTHREAD,
              nullptr) != -ECHILD;
}

// The bearer is dead. What only waited ends with it, what runs is carried on.
void CarryOrphan(Slot* slot) {
  if (!HasChild()) return;
  const int child = slot->pidfd.Load();
  if (slot->given.Load() == 0) {
    (void)Call(SYS_pidfd_send_signal, child, SIGKILL, nullptr, 0);
    AwaitReadable(child);
  }
  // It may have been given something in the meantime.
  if (slot->given.Load() == 0) {
    Reap(child, nullptr, nullptr);
    Close(child);
    return;
  }
  InitReply reply{};
  RegisterGiven(slot);
  // Until now the slot seemed to be free, and the main thread may have counted on it to lead.
  NotifyMain(*slot->pool);
  reply.stamps[kStampPrepared] = slot->prepared_ns;
  ObeyOrders(slot);
  CarryToEnd(slot, kSuccess, &reply);
  CarryDetached(slot, &reply);
  ConcludeGiven(slot, reply, -1);
}

void CarryAll(Slot* slot) {
  int child = -1;
  for (;;) {
    // Whoever empties `orders` comes by here before the next poll.
    if (slot->born.Exchange(false)) child = slot->pidfd.Load();
    const bool unborn = slot->unborn.Exchange(false);
    pollfd watched[] = {
        {slot->orders, POLLIN, 0}, {slot->bearer.Load(), POLLIN, 0}, {child, POLLIN, 0}};
    (void)Poll(watched, 3, unborn ? 0 : kNoTimeout);
    std::uint64_t rung;
    (void)Call(SYS_read, slot->orders, &rung, sizeof rung);
    const bool ended = watched[2].revents != 0 && slot->given.Load() != 0;
    if (unborn || ended) {
      child = -1;
      if (!CarryGiven(slot, unborn ? slot->plan.failure : kSuccess)) return;
      continue;
    }
    if (watched[1].revents != 0 || watched[2].revents != 0 || IsToEnd(*slot)) break;
    ObeyIfGiven(slot);
  }
  Unlist(slot);
  EndBearer(slot);
  CarryOrphan(slot);
  slot->given.Store(0);  // What has no answer yet was never started.
  SendDisarmed(slot->arming);
}

}  // namespace

void Bear(Slot* slot) {
  const Failure failure = MakeBearer(slot);
  if (failure.failed()) {
    Unlist(slot);
    TellBirth(slot, kNobody);
    SendNotArmed(slot->arming, failure);
  } else {
    CarryAll(slot);
  }
  slot->borne_pid.Store(0);
  slot->arming = 0;
  slot->bears = false;
}

Failure PassOn(Slot* slot, const char* buffer, Message* message) {
  const long sent = SendWithFds(slot->to_bearer, buffer, static_cast<std::size_t>(message->size),
                                message->fds, message->fd_count);
  // It is as good as dead when nothing can be sent to it, but for this.
  if (TooManyUnderWay(sent)) return FailureIf(sent, Step::kArm);
  if (sent < 0) return {Step::kArm, ESRCH};
  message->CloseFds();
  slot->passed_on = true;
  return kSuccess;
}

}  // namespace palmshed::child
