#include "run/pump.h"

#include <sys/ioctl.h>

#include <cerrno>
#include <cstdint>
#include <expected>
#include <functional>
#include <utility>

#include "base/loop.h"
#include "base/result.h"
#include "base/sys.h"
#include "palmshed/error.h"
#include "run/output.h"
#include "run/terminal.h"

namespace palmshed::run {

Result<void> Pump::Watch(Loop& loop, std::function<void()> ready) {
  if (!open() || watch_) return {};
  PALMSHED_TRY(watch_, loop.WatchReadable(fd_.get(), std::move(ready)));
  return {};
}

Result<bool> Pump::ReadOnce(Output& output) {
  if (!open()) return false;
  const auto space = output.Reserve();
  const auto size = sys::Read(fd_.get(), space);
  if (!size && size.error().sys_errno == EAGAIN) return false;
  if (!size) return std::unexpected(size.error());
  if (*size == 0) {
    Close();
    return false;
  }
  output.Commit(*size);
  // A short read has emptied the pipe; asking again would only cost a system call.
  return *size == space.size();
}

Result<void> Pump::Drain(Output& output) {
  int there = 0;
  if (open() && ::ioctl(fd_.get(), FIONREAD, &there) < 0) {
    return std::unexpected(SysError("ioctl", errno));
  }
  const std::uint64_t goal = output.total() + static_cast<std::uint64_t>(there);
  while (output.total() < goal && open()) PALMSHED_TRY_VOID(ReadOnce(output));
  return {};
}

/// What was written is read before EAGAIN is answered (n_tty_read), so that is its end. Somebody
/// elsewhere in the sandbox may still write to it.
Result<void> Pump::DrainTerminal(Output& output) {
  const std::uint64_t most = output.total() + Terminal::kMostHeld;
  std::uint64_t before = most;
  while (open() && output.total() != before && output.total() < most) {
    before = output.total();
    PALMSHED_TRY_VOID(ReadOnce(output));
  }
  return {};
}

void Pump::Close() {
  watch_.reset();
  fd_.reset();
}

}  // namespace palmshed::run
