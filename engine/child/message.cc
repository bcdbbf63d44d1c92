#include "child/message.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "child/raw.h"
#include "child/wire.h"

namespace palmshed::child {
namespace {

union ControlBuffer {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int) * kMaxFds)];
};

void TakeFds(const msghdr& header, const ControlBuffer& control, Message* message) {
  if (header.msg_controllen < CMSG_LEN(0)) return;
  if (control.header.cmsg_level != SOL_SOCKET || control.header.cmsg_type != SCM_RIGHTS) return;
  const std::size_t bytes = control.header.cmsg_len - CMSG_LEN(0);
  message->fd_count = static_cast<int>(bytes / sizeof(int));
  std::memcpy(message->fds, CMSG_DATA(&control.header), bytes);
}

}  // namespace

void Message::CloseFds() {
  for (int i = 0; i < fd_count; ++i) Close(fds[i]);
  fd_count = 0;
}

Message ReceiveMessage(int socket, void* buffer, std::size_t capacity) {
  Message message;
  ControlBuffer control{};
  iovec part{buffer, capacity};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = &control;
  header.msg_controllen = sizeof control;
  do {
    message.size = Call(SYS_recvmsg, socket, &header, MSG_CMSG_CLOEXEC);
  } while (message.size == -EINTR);
  if (message.size < 0) return message;
  message.truncated = (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  TakeFds(header, control, &message);
  return message;
}

long SendWithFds(int socket, const void* bytes, std::size_t size, const int* fds, int count) {
  ControlBuffer control{};
  iovec part{const_cast<void*>(bytes), size};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (count > 0) {
    const std::size_t fd_bytes = static_cast<std::size_t>(count) * sizeof(int);
    header.msg_control = &control;
    header.msg_controllen = static_cast<socklen_t>(CMSG_SPACE(fd_bytes));
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = static_cast<socklen_t>(CMSG_LEN(fd_bytes));
    std::memcpy(CMSG_DATA(&control.header), fds, fd_bytes);
  }
  long sent;
  do {
    sent = Call(SYS_sendmsg, socket, &header, MSG_NOSIGNAL);
  } while (sent == -EINTR);
  return sent < 0 ? sent : 0;
}

bool TooManyUnderWay(long sent) {
  return sent == -ETOOMANYREFS;  // NOLINT(misc-include-cleaner): Linux's own, in <cerrno> too
}

long SendMessage(int socket, const void* bytes, std::size_t size, int fd) {
  return SendWithFds(socket, bytes, size, &fd, fd >= 0 ? 1 : 0);
}

}  // namespace palmshed::child
