#include "run/terminal.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/options.h"

namespace palmshed::run {
namespace {

constexpr std::size_t kEnds = 2;

}  // namespace

Result<UniqueFd> Terminal::Ask() {
  PALMSHED_TRY(auto sockets, sys::SocketPair());
  socket_ = std::move(sockets.first);
  return std::move(sockets.second);
}

Result<std::optional<Terminal::Ends>> Terminal::Take() {
  if (!socket_.valid()) return std::nullopt;
  std::array<std::byte, 1> nothing{};
  auto message = sys::ReceiveMessage(socket_.get(), nothing, MSG_DONTWAIT);
  if (!message && message.error().sys_errno == EAGAIN) return std::nullopt;
  socket_.reset();
  if (!message) return std::unexpected(std::move(message.error()));
  // The child ended on its way; the backend says why.
  if (message->size == 0) return std::nullopt;
  if (message->fds.size() != kEnds) return std::unexpected(SysError("recvmsg", EMFILE));
  master_ = std::move(message->fds[0]);
  slave_ = std::move(message->fds[1]);
  PALMSHED_TRY(UniqueFd out, sys::Duplicate(master_.get()));
  PALMSHED_TRY(UniqueFd in, sys::Duplicate(master_.get()));
  if (size_) SetSize(*size_);
  return Ends{.out = std::move(out), .in = std::move(in)};
}

void Terminal::Resize(TerminalSize size) {
  if (master_.valid()) return SetSize(size);
  if (socket_.valid()) size_ = size;
}

void Terminal::SetSize(TerminalSize size) const {
  const winsize window{.ws_row = size.rows, .ws_col = size.columns, .ws_xpixel = 0, .ws_ypixel = 0};
  (void)::ioctl(master_.get(), TIOCSWINSZ, &window);  // Cannot fail: it is a terminal.
}

void Terminal::Close() {
  socket_.reset();
  master_.reset();
  slave_.reset();
}

Result<std::string> EndOfInput(BorrowedFd terminal, bool after_line) {
  termios modes{};
  if (::tcgetattr(terminal, &modes) < 0) return std::unexpected(SysError("tcgetattr", errno));
  if (modes.c_cc[VEOF] == _POSIX_VDISABLE) return {};
  return std::string(after_line ? 1 : 2, static_cast<char>(modes.c_cc[VEOF]));
}

}  // namespace palmshed::run
