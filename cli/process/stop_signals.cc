#include "cli/process/stop_signals.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <expected>
#include <utility>

#include "cli/process/raw_mode.h"
#include "cli/process/wakeup.h"
#include "palmshed/error.h"

namespace palmshed::cli {
namespace {

// A handler gets no argument of ours, so what it touches has to be of the process. It is lock-free
// and async-signal-safe.
std::atomic<int> first_signal{0};
std::atomic<const Wakeup*> wakeup{nullptr};
static_assert(std::atomic<int>::is_always_lock_free);

void OnSignal(int signal) {
  const int saved = errno;
  int none = 0;
  // The kernel kills every workload when we go, so an abrupt end leaves nothing that runs.
  if (!first_signal.compare_exchange_strong(none, signal)) {
    RestoreTerminal();
    ::_exit(128 + signal);
  }
  wakeup.load()->Set();
  errno = saved;
}

bool IsIgnored(int signal) {
  struct sigaction current{};
  return ::sigaction(signal, nullptr, &current) == 0 && current.sa_handler == SIG_IGN;
}

}  // namespace

Result<StopSignals> StopSignals::Install() {
  auto made = Wakeup::Create();
  if (!made) return std::unexpected(std::move(made.error()));
  const int fd = made->fd();
  wakeup = new Wakeup(*std::move(made));  // Lives as long as the handlers: to the end.

  struct sigaction action{};
  action.sa_handler = OnSignal;
  // The engine's calls on this thread go on; the poll loop is woken by the descriptor.
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (!IsIgnored(signal)) (void)::sigaction(signal, &action, nullptr);
  }
  action.sa_handler = SIG_IGN;
  (void)::sigaction(SIGPIPE, &action, nullptr);
  return StopSignals(fd);
}

int StopSignals::received() const { return first_signal; }

}  // namespace palmshed::cli
