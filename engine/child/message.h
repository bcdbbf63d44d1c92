// Messages with descriptors on SOCK_SEQPACKET sockets.
#pragma once

#include <cstddef>
#include <cstdint>

#include "child/wire.h"

namespace palmshed::child {

/// A received message; the descriptors are the receiver's to close.
struct Message {
  long size = 0;           ///< 0: the peer has closed; negative: errno.
  bool truncated = false;  ///< Bytes or descriptors were lost.
  int fd_count = 0;
  int fds[kMaxFds];  ///< The first `fd_count` are set.

  bool gone() const { return size <= 0; }
  void CloseFds();
};

Message ReceiveMessage(int socket, void* buffer, std::size_t capacity);

/// Sends one message, with `fd` unless it is negative; 0 or a negative errno.
long SendMessage(int socket, const void* bytes, std::size_t size, int fd = -1);
/// The same with `count` descriptors, at most kMaxExecFds.
long SendWithFds(int socket, const void* bytes, std::size_t size, const int* fds, int count);

/// Whether that was for the descriptors alone: a user's processes together may have only so many on
/// their way (ETOOMANYREFS, unix(7)), and those of others may be what is too much.
bool TooManyUnderWay(long sent);

}  // namespace palmshed::child
