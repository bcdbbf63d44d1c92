#include "cli/process/window.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <expected>
#include <optional>
#include <utility>

#include "cli/process/wakeup.h"
#include "palmshed/error.h"
#include "palmshed/options.h"

namespace palmshed::cli {
namespace {

// The handler's.
std::atomic<int> changes{-1};
static_assert(std::atomic<int>::is_always_lock_free);

void OnChange(int) {
  const int saved = errno;
  const std::uint64_t one = 1;
  // Ignoring a failure, because it can only mean that the flag is set to the brim already.
  (void)!::write(changes, &one, sizeof one);
  errno = saved;
}

}  // namespace

std::optional<TerminalSize> OwnTerminalSize() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    winsize size{};
    if (::ioctl(fd, TIOCGWINSZ, &size) < 0) continue;
    if (size.ws_row == 0 || size.ws_col == 0) return TerminalSize{};
    return TerminalSize{.rows = size.ws_row, .columns = size.ws_col};
  }
  return std::nullopt;
}

Result<WindowChanges> WindowChanges::Watch() {
  auto wakeup = Wakeup::Create();
  if (!wakeup) return std::unexpected(std::move(wakeup.error()));
  changes = wakeup->fd();
  struct sigaction action{};
  action.sa_handler = OnChange;
  action.sa_flags = SA_RESTART;
  (void)::sigaction(SIGWINCH, &action, nullptr);
  return WindowChanges(*std::move(wakeup));
}

std::optional<TerminalSize> WindowChanges::Take() const {
  wakeup_.Clear();
  return OwnTerminalSize();
}

}  // namespace palmshed::cli
