// The engine's requests to a sandbox.
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "child/armed.h"
#include "child/atomic.h"
#include "child/failure.h"
#include "child/message.h"
#include "child/mutex.h"
#include "child/pool.h"
#include "child/raw.h"
#include "child/wire.h"

namespace palmshed::child {
namespace {

constexpr int kSignals = 64;

// What every request starts with.
struct RequestHeader {
  InitOp op;
  std::uint32_t sequence;
};
static_assert(offsetof(ExecRequest, sequence) == offsetof(RequestHeader, sequence));
static_assert(offsetof(KillRequest, sequence) == offsetof(RequestHeader, sequence));
static_assert(offsetof(ArmRequest, sequence) == offsetof(RequestHeader, sequence));
static_assert(offsetof(OpenRequest, sequence) == offsetof(RequestHeader, sequence));

RequestHeader HeaderOf(const char* buffer, const Message& message) {
  RequestHeader header{};
  if (message.size >= static_cast<long>(sizeof header)) {
    std::memcpy(&header, buffer, sizeof header);
  }
  return header;
}

// The engine is gone, or its end of the socket broke: everything ends with PID 1.
Message Receive(char* buffer) {
  const Message message = ReceiveMessage(kSocketFd, buffer, kMaxMessage);
  if (message.gone()) ExitGroup(0);
  return message;
}

void RefuseExecution(std::uint32_t sequence, const Failure& failure) {
  InitReply reply{};
  reply.answer = InitAnswer::kEnded;
  reply.sequence = sequence;
  reply.kind = EndKind::kStartupFailed;
  reply.step = failure.step;
  reply.sys_errno = failure.sys_errno;
  reply.detail = failure.detail;
  SendEnd(reply);
}

// ---- control requests

void ForgetOrdersOfOthers(Slot* slot, std::uint32_t sequence) {
  if (slot->ordered == sequence) return;
  slot->ordered = sequence;
  slot->main_orders.Store(0);
  slot->all_orders.Store(0);
}

// An exec that hangs in the kernel keeps its slot from looking at the orders; the main thread,
// whose signal scope encloses those of the slots, can end it.
void Order(const Pool& pool, Slot* slot, const KillRequest& request) {
  const std::uint64_t bit = std::uint64_t{1} << (request.signal - 1);
  ForgetOrdersOfOthers(slot, request.sequence);
  (request.all != 0 ? slot->all_orders : slot->main_orders).FetchOr(bit);
  Ring(slot->orders);
  if (slot->starting && request.signal == SIGKILL) NotifyMain(pool);
}

void Kill(Pool* pool, const KillRequest& request) {
  if (request.sequence == 0 || request.signal < 1 || request.signal > kSignals) return;
  const MutexLock lock(pool->lock);
  for (std::uint32_t i = 0; i < pool->slot_count; ++i) {
    Slot* const slot = pool->slots[i];
    // Of what a bearer has got, its slot may not know yet.
    const bool coming = slot->sequence == 0 && slot->bears && slot->armed == request.armed &&
                        request.armed != 0 && request.sequence > slot->concluded;
    if (slot->sequence != request.sequence && !coming) continue;
    Order(*pool, slot, request);
    return;
  }
}

// Init stands in the workspace.
long OpenInside(Inside what) {
  switch (what) {
    case Inside::kWorkspace:
      return OpenAt(AT_FDCWD, ".", O_RDONLY | O_DIRECTORY);
    case Inside::kSysvSegments:
      return OpenAt(AT_FDCWD, "/proc/sysvipc/shm", O_RDONLY);
    case Inside::kTcpSockets:
      return OpenAt(AT_FDCWD, "/proc/net/tcp", O_RDONLY);
    case Inside::kTcp6Sockets:
      return OpenAt(AT_FDCWD, "/proc/net/tcp6", O_RDONLY);
  }
  return -EBADMSG;
}

void SendOpened(const char* buffer, const Message& message) {
  OpenRequest request{};
  if (message.size >= static_cast<long>(sizeof request)) {
    std::memcpy(&request, buffer, sizeof request);
  }
  InitReply reply{};
  reply.answer = InitAnswer::kOpened;
  reply.sequence = HeaderOf(buffer, message).sequence;
  const long opened = OpenInside(request.what);
  const int fd = static_cast<int>(opened);
  const long sent = opened < 0 ? opened : SendMessage(kSocketFd, &reply, sizeof reply, fd);
  if (opened >= 0) Close(fd);
  if (sent >= 0) return;
  if (opened >= 0 && !TooManyUnderWay(sent)) ExitGroup(0);
  reply.step = Step::kOpenInside;
  reply.sys_errno = static_cast<std::int32_t>(-sent);
  if (SendMessage(kSocketFd, &reply, sizeof reply) < 0) ExitGroup(0);
}

void ServeControl(Pool* pool, const char* buffer, const Message& message) {
  const RequestHeader header = HeaderOf(buffer, message);
  if (header.op == InitOp::kOpen) SendOpened(buffer, message);
  if (header.op == InitOp::kDisarm && header.sequence != 0) Disarm(pool, header.sequence);
  KillRequest kill;
  if (header.op != InitOp::kKill || message.size < static_cast<long>(sizeof kill)) return;
  std::memcpy(&kill, buffer, sizeof kill);
  Kill(pool, kill);
}

// ---- executions

// For two births that have to wait for a processor.
constexpr std::uint64_t kLongestBirthNs = 200'000'000;

const FutexWord* FindComing(Pool* pool) {
  const MutexLock lock(pool->lock);
  for (std::uint32_t i = 0; i < pool->slot_count; ++i) {
    const Slot& slot = *pool->slots[i];
    if (slot.armed != 0 && slot.birth.Load() == kComing) return &slot.birth;
  }
  return nullptr;
}

// Whoever is on the way is counted, and as long as it is not there the workload has room for one
// more.
void AwaitBirths(Pool* pool) {
  const std::uint64_t deadline = NowNs() + kLongestBirthNs;
  while (const FutexWord* const birth = FindComing(pool)) {
    const std::uint64_t now = NowNs();
    if (now >= deadline) return;
    FutexWait(*birth, kComing, deadline - now);
  }
}

// False when the request was refused, and when a child that was waiting has got it.
bool AcceptExec(Pool* pool, Slot* slot, const char* buffer, Message* message,
                const Failure& no_slot) {
  const std::uint64_t received_ns = NowNs();
  ExecRequest request;
  Failure failure{Step::kRequest, EBADMSG};
  if (message->size >= static_cast<long>(sizeof request)) {
    std::memcpy(&request, buffer, sizeof request);
    failure = CheckExec(request, *message);
  }
  if (!failure.failed() && request.processes != 0) AwaitBirths(pool);
  if (!failure.failed() && request.armed != 0) {
    failure = HandOver(pool, request, buffer, message, received_ns);
    if (!failure.failed()) return false;
  } else if (!failure.failed()) {
    failure = no_slot;
  }
  if (!failure.failed()) {
    slot->received_ns = received_ns;
    KeepRequest(slot, request, *message);
    const MutexLock lock(pool->lock);
    RegisterLocked(slot);
    return true;
  }
  message->CloseFds();
  RefuseExecution(HeaderOf(buffer, *message).sequence, failure);
  return false;
}

// RLIMIT_NPROC counts every task of the user, those of init too (getrlimit(2)).
std::uint64_t OwnTasksLocked(const Pool& pool) {
  std::uint64_t own = 1 + pool.waiting;
  for (std::uint32_t i = 0; i < pool.slot_count; ++i) {
    const Slot& slot = *pool.slots[i];
    own += slot.thread.Load();
    const bool borne = slot.bears && slot.armed != 0 && slot.given.Load() == 0;
    if (borne && slot.birth.Load() != kNobody) ++own;  // Besides its bearer.
  }
  return own;
}

}  // namespace

Failure CheckExec(const ExecRequest& request, const Message& message) {
  if (message.truncated) return {Step::kRequest, EMFILE};
  const bool in_file = (request.flags & kExecPayloadInFile) != 0;
  const int streams = (request.flags & kExecTerminal) != 0 ? 1
                      : (request.flags & kExecStdin) != 0  ? 3
                                                           : 2;
  const int expected = streams + (in_file ? 1 : 0);
  if (request.sequence == 0 || message.fd_count != expected) return {Step::kRequest, EBADMSG};
  const auto inline_bytes = static_cast<std::uint64_t>(message.size) - sizeof request;
  if (!in_file && inline_bytes != request.payload_bytes) return {Step::kRequest, EBADMSG};
  return kSuccess;
}

void TellBirth(Slot* slot, Birth birth) {
  slot->birth.Store(birth);
  FutexWake(slot->birth, Pool::kMaxSlots);
}

void KeepRequest(Slot* slot, const ExecRequest& request, const Message& message) {
  slot->request = request;
  slot->fd_count = message.fd_count;
  for (int i = 0; i < message.fd_count; ++i) slot->fds[i] = message.fds[i];
}

void RegisterLocked(Slot* slot) {
  ExecRequest& request = slot->request;
  if (request.processes != 0) request.processes += OwnTasksLocked(*slot->pool);
  ForgetOrdersOfOthers(slot, request.sequence);
  slot->sequence = request.sequence;
  slot->starting = true;
  ++slot->pool->live;
}

// What the descriptor is for can be done by way of init, too.
void SendEnd(const InitReply& reply, int fd) {
  long sent = SendMessage(kSocketFd, &reply, sizeof reply, fd);
  if (TooManyUnderWay(sent)) sent = SendMessage(kSocketFd, &reply, sizeof reply);
  if (sent < 0) ExitGroup(0);
}

void Lead(Slot* slot) {
  for (;;) {
    Message message = Receive(slot->message);
    const RequestHeader header = HeaderOf(slot->message, message);
    if (header.op == InitOp::kExec) {
      slot->pidfd.Store(-1);
      if (AcceptExec(slot->pool, slot, slot->message, &message, kSuccess)) return;
      continue;
    }
    ArmRequest arm{};
    if (header.op == InitOp::kArm && message.size >= static_cast<long>(sizeof arm)) {
      std::memcpy(&arm, slot->message, sizeof arm);
    }
    if (arm.sequence != 0) {
      message.CloseFds();
      RegisterArming(slot, arm);
      return;
    }
    ServeControl(slot->pool, slot->message, message);
    message.CloseFds();
  }
}

void ServeWithoutSlot(Pool* pool, char* buffer, const Failure& reason) {
  Message message = Receive(buffer);
  const RequestHeader header = HeaderOf(buffer, message);
  if (header.op == InitOp::kExec) {
    (void)AcceptExec(pool, nullptr, buffer, &message, reason);
    return;
  }
  if (header.op == InitOp::kArm) {
    SendNotArmed(header.sequence, reason);
  } else {
    ServeControl(pool, buffer, message);
  }
  message.CloseFds();
}

}  // namespace palmshed::child
