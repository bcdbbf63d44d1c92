// Messages with descriptors on SOCK_SEQPACKET sockets.
#pragma once

#include <cstddef>
#include <cstdint>

namespace palmshed::child {

inline constexpr int kMaxFds = 8;

/// A received message; the descriptors are the receiver's to close.
struct Message {
  long size = 0;           ///< 0: the peer has closed; negative: errno.
  bool truncated = false;  ///< Bytes or descriptors were lost.
  int fd_count = 0;
  int fds[kMaxFds] = {};

  bool gone() const { return size <= 0; }
  void CloseFds();
};

Message ReceiveMessage(int socket, void* buffer, std::size_t capacity);

/// Sends one message, with `fd` unless it is negative; 0 or a negative errno.
long SendMessage(int socket, const void* bytes, std::size_t size, int fd = -1);

}  // namespace palmshed::child
