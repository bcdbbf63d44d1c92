// The engine's requests to a sandbox.
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>

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
static_assert(offsetof(WorkspaceRequest, sequence) == offsetof(RequestHeader, sequence));

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

// An exec that hangs in the kernel keeps its slot from looking at the orders; the main thread,
// whose signal scope encloses those of the slots, can end it.
void Order(const Pool& pool, Slot* slot, const KillRequest& request) {
  const std::uint64_t bit = std::uint64_t{1} << (request.signal - 1);
  (request.all != 0 ? slot->all_orders : slot->main_orders).FetchOr(bit);
  const std::uint64_t one = 1;
  (void)Call(SYS_write, slot->orders, &one, sizeof one);
  if (slot->starting && request.signal == SIGKILL) NotifyMain(pool);
}

void Kill(Pool* pool, const KillRequest& request) {
  if (request.sequence == 0 || request.signal < 1 || request.signal > kSignals) return;
  const MutexLock lock(pool->lock);
  for (std::uint32_t i = 0; i < pool->slot_count; ++i) {
    if (pool->slots[i]->sequence != request.sequence) continue;
    Order(*pool, pool->slots[i], request);
    return;
  }
}

// Init stands in the workspace.
void SendWorkspace(std::uint32_t sequence) {
  InitReply reply{};
  reply.answer = InitAnswer::kWorkspace;
  reply.sequence = sequence;
  const long workspace = OpenAt(AT_FDCWD, ".", O_RDONLY | O_DIRECTORY);
  if (workspace < 0) {
    reply.step = Step::kOpenWorkspace;
    reply.sys_errno = static_cast<std::int32_t>(-workspace);
  }
  if (SendMessage(kSocketFd, &reply, sizeof reply, static_cast<int>(workspace)) < 0) ExitGroup(0);
  if (workspace >= 0) Close(static_cast<int>(workspace));
}

void ServeControl(Pool* pool, const char* buffer, const Message& message) {
  const RequestHeader header = HeaderOf(buffer, message);
  if (header.op == InitOp::kWorkspace) SendWorkspace(header.sequence);
  KillRequest kill;
  if (header.op != InitOp::kKill || message.size < static_cast<long>(sizeof kill)) return;
  std::memcpy(&kill, buffer, sizeof kill);
  Kill(pool, kill);
}

// ---- executions

Failure CheckExec(const ExecRequest& request, const Message& message) {
  if (message.truncated) return {Step::kRequest, EMFILE};
  const bool in_file = (request.flags & kExecPayloadInFile) != 0;
  const int expected = 2 + ((request.flags & kExecStdin) != 0 ? 1 : 0) + (in_file ? 1 : 0);
  if (request.sequence == 0 || message.fd_count != expected) return {Step::kRequest, EBADMSG};
  const auto inline_bytes = static_cast<std::uint64_t>(message.size) - sizeof request;
  if (!in_file && inline_bytes != request.payload_bytes) return {Step::kRequest, EBADMSG};
  return kSuccess;
}

void Register(Slot* slot, const ExecRequest& request, const Message& message) {
  slot->request = request;
  slot->fd_count = message.fd_count;
  std::memcpy(slot->fds, message.fds, sizeof slot->fds);
  slot->main_orders.Store(0);
  slot->all_orders.Store(0);
  slot->orphan_cpu_ns.Store(0);
  slot->orphan_max_rss.Store(0);
  slot->pidfd.Store(-1);
  const MutexLock lock(slot->pool->lock);
  slot->sequence = request.sequence;
  slot->starting = true;
  ++slot->pool->live;
}

// False when the request was refused.
bool AcceptExec(Slot* slot, Message* message) {
  slot->received_ns = NowNs();
  ExecRequest request;
  Failure failure{Step::kRequest, EBADMSG};
  if (message->size >= static_cast<long>(sizeof request)) {
    std::memcpy(&request, slot->message, sizeof request);
    failure = CheckExec(request, *message);
  }
  if (!failure.failed()) {
    Register(slot, request, *message);
    return true;
  }
  message->CloseFds();
  RefuseExecution(HeaderOf(slot->message, *message).sequence, failure);
  return false;
}

}  // namespace

void SendEnd(const InitReply& reply) {
  if (SendMessage(kSocketFd, &reply, sizeof reply) < 0) ExitGroup(0);
}

void Lead(Slot* slot) {
  for (;;) {
    Message message = Receive(slot->message);
    if (HeaderOf(slot->message, message).op == InitOp::kExec) {
      if (AcceptExec(slot, &message)) return;
      continue;
    }
    ServeControl(slot->pool, slot->message, message);
    message.CloseFds();
  }
}

void ServeWithoutSlot(Pool* pool, char* buffer, const Failure& reason) {
  Message message = Receive(buffer);
  const RequestHeader header = HeaderOf(buffer, message);
  if (header.op == InitOp::kExec) {
    RefuseExecution(header.sequence, reason);
  } else {
    ServeControl(pool, buffer, message);
  }
  message.CloseFds();
}

}  // namespace palmshed::child
