#include "backends/native/await_by_loop.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <expected>
#include <future>
#include <memory>
#include <span>
#include <utility>

#include "base/loop.h"
#include "base/result.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::backends::native {

Result<void> AwaitReadableByLoop(Loop& loop, BorrowedFd fd) {
  // Shared: who waits may be gone before set_value returns.
  const auto readable = std::make_shared<std::promise<void>>();
  std::unique_ptr<Loop::Watch> watch;
  Result<void> watched;
  loop.Run([&] {
    auto made = loop.WatchReadable(fd, [readable, &watch] {
      watch.reset();
      readable->set_value();
    });
    if (made) {
      watch = *std::move(made);
    } else {
      watched = std::unexpected(std::move(made.error()));
    }
  });
  if (watched) readable->get_future().wait();
  return watched;
}

Result<void> AwaitEndByLoop(Loop& loop, BorrowedFd socket) {
  while (true) {
    std::byte part{};
    auto message = sys::ReceiveMessage(socket, std::span(&part, 1), MSG_DONTWAIT);
    if (message && message->size == 0) return {};
    // ECONNRESET: said once, when the other end was closed with a message unread.
    if (message || message.error().sys_errno == ECONNRESET) continue;
    if (message.error().sys_errno != EAGAIN) return std::unexpected(std::move(message.error()));
    PALMSHED_TRY_VOID(AwaitReadableByLoop(loop, socket));
  }
}

}  // namespace palmshed::backends::native
