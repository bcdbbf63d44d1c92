#include "child/armed.h"

#include <sched.h>
#include <sys/wait.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "child/bearer.h"
#include "child/failure.h"
#include "child/kernel_abi.h"
#include "child/message.h"
#include "child/mutex.h"
#include "child/pool.h"
#include "child/raw.h"
#include "child/wire.h"
#include "child/workload.h"

namespace palmshed::child {
namespace {

// What the child waits for in `told`.
constexpr std::uint32_t kNothing = 0;
constexpr std::uint32_t kProgram = 1;
constexpr std::uint32_t kLeave = 2;

Slot* FindLocked(const Pool& pool, std::uint32_t sequence) {
  for (std::uint32_t i = 0; i < pool.slot_count; ++i) {
    if (pool.slots[i]->armed == sequence) return pool.slots[i];
  }
  return nullptr;
}

void Tell(Slot* slot, std::uint32_t what) {
  slot->told.Store(what);
  FutexWake(slot->told, 1);
}

// ---- in the child

// An empty range: nothing is closed, but from here on the descriptors are the child's own.
Failure TakeOwnDescriptors() {
  return FailureIf(Call(SYS_close_range, ~0U, ~0U, kCloseRangeUnshare), Step::kStdio);
}

void WaitInChild(void* shared) {
  auto* const slot = static_cast<Slot*>(shared);
  TellBirth(slot, kThere);
  SendArmed(slot->arming, slot->pidfd.Load());
  while (slot->told.Load() == kNothing) FutexWait(slot->told, kNothing);
  if (slot->told.Load() != kProgram) ExitGroup(0);
  slot->plan.failure = TakeOwnDescriptors();
  if (!slot->plan.failure.failed()) slot->plan.failure = PrepareWorkload(slot);
  if (slot->plan.failure.failed()) ExitGroup(127);
  BecomeWorkloadInChild(&slot->plan);
}

}  // namespace

void SendNotArmed(std::uint32_t sequence, const Failure& failure) {
  InitReply reply{};
  reply.answer = InitAnswer::kArmed;
  reply.sequence = sequence;
  reply.step = failure.step;
  reply.sys_errno = failure.sys_errno;
  if (SendMessage(kSocketFd, &reply, sizeof reply) < 0) ExitGroup(0);
}

void SendArmed(std::uint32_t sequence, int pidfd, int socket) {
  InitReply reply{};
  reply.answer = InitAnswer::kArmed;
  reply.sequence = sequence;
  const int fds[] = {pidfd, socket};
  const long sent = SendWithFds(kSocketFd, &reply, sizeof reply, fds, socket >= 0 ? 2 : 1);
  if (sent >= 0) return;
  if (TooManyUnderWay(sent)) SendNotArmed(sequence, FailureIf(sent, Step::kArm));
  ExitGroup(0);
}

void SendDisarmed(std::uint32_t sequence) {
  InitReply reply{};
  reply.answer = InitAnswer::kDisarmed;
  reply.sequence = sequence;
  if (SendMessage(kSocketFd, &reply, sizeof reply) < 0) ExitGroup(0);
}

void RegisterArming(Slot* slot, const ArmRequest& request) {
  slot->arming = request.sequence;
  slot->bears = request.role != ChildRole::kBecomesProgram;
  slot->at_once = request.role == ChildRole::kBearsAtOnce;
  slot->told.Store(kNothing);
  slot->birth.Store(kComing);
  slot->pidfd.Store(-1);
  slot->plan.failure = kSuccess;
  const MutexLock lock(slot->pool->lock);
  slot->armed = request.sequence;
  ++slot->pool->waiting;
}

bool AwaitProgram(Slot* slot, Failure* failure) {
  constexpr unsigned long kFlags = CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_PIDFD | SIGCHLD;
  const long pid = PalmshedCloneOnStack(kFlags, slot->child_stack_top, slot->pidfd.address(),
                                        nullptr, WaitInChild, slot);
  TellBirth(slot, kNobody);
  bool told = false;
  {
    const MutexLock lock(slot->pool->lock);
    told = slot->sequence != 0;
    slot->starting = false;
    if (slot->armed != 0) --slot->pool->waiting;
    slot->armed = 0;
  }
  const std::uint32_t arming = slot->arming;
  slot->arming = 0;
  if (pid < 0) {
    SendNotArmed(arming, FailureIf(pid, Step::kArm));
    return false;
  }
  *failure = slot->plan.failure;
  if (!told || failure->failed()) {
    Reap(slot->pidfd.Load(), nullptr, nullptr);
    Close(slot->pidfd.Load());
  }
  if (!told) SendDisarmed(arming);
  return told;
}

Failure HandOver(Pool* pool, const ExecRequest& request, const char* buffer, Message* message,
                 std::uint64_t received_ns) {
  const MutexLock lock(pool->lock);
  Slot* const slot = FindLocked(*pool, request.armed);
  if (slot == nullptr) return {Step::kArm, ESRCH};
  if (slot->bears) return PassOn(slot, buffer, message);
  std::memcpy(slot->message, buffer, static_cast<std::size_t>(message->size));
  slot->armed = 0;
  --pool->waiting;
  slot->received_ns = received_ns;
  KeepRequest(slot, request, *message);
  RegisterLocked(slot);
  Tell(slot, kProgram);
  return kSuccess;
}

void Disarm(Pool* pool, std::uint32_t sequence) {
  const MutexLock lock(pool->lock);
  Slot* const slot = FindLocked(*pool, sequence);
  if (slot == nullptr) return;
  slot->armed = 0;  // No program may be handed to it any more.
  --pool->waiting;
  if (slot->bears) {
    Ring(slot->orders);  // Its own thread alone can reach the bearer.
  } else {
    Tell(slot, kLeave);
  }
}

}  // namespace palmshed::child
