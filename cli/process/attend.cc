#include "cli/process/attend.h"

#include <poll.h>

#include <array>
#include <cerrno>
#include <expected>
#include <utility>

#include "cli/process/input_feed.h"
#include "cli/process/output_writer.h"
#include "cli/process/stop_signals.h"
#include "cli/process/window.h"
#include "palmshed/error.h"
#include "palmshed/execution.h"

namespace palmshed::cli {
namespace {

/// How long to wait for room in the engine's full input queue of 16 MiB.
constexpr int kCongestedMs = 5;

bool IsReady(const pollfd& wait) { return wait.revents != 0; }

void PassSizeOn(const WindowChanges& window, Execution& execution) {
  const auto size = window.Take();
  if (size) (void)execution.Resize(*size);  // Ignoring a failure: it has just ended.
}

}  // namespace

Result<void> Attend(Execution& execution, const StopSignals& signals, const OutputWriter& output,
                    InputFeed* input, const WindowChanges* window) {
  if (execution.ready_fd() < 0) {
    (void)execution.Cancel();
    return std::unexpected(Error{.code = ErrorCode::kOverloaded,
                                 .message = "no descriptor is left to wait for the program's end",
                                 .remedy = "raise the limit of open files (ulimit -n)"});
  }
  std::array<pollfd, 5> waits{
      {{.fd = execution.ready_fd(), .events = POLLIN, .revents = 0},
       {.fd = signals.fd(), .events = POLLIN, .revents = 0},
       {.fd = output.failed_fd(), .events = POLLIN, .revents = 0},
       {.fd = -1, .events = POLLIN, .revents = 0},
       {.fd = window != nullptr ? window->fd() : -1, .events = POLLIN, .revents = 0}}};
  auto& [ended, stop, broken, in, resized] = waits;
  while (true) {
    in.fd = input != nullptr ? input->fd() : -1;
    const bool congested = input != nullptr && input->congested();
    if (::poll(waits.data(), waits.size(), congested ? kCongestedMs : -1) < 0) {
      if (errno == EINTR) continue;
      (void)execution.Cancel();
      return std::unexpected(
          Error{.code = ErrorCode::kUnknown, .message = "poll", .op = "poll", .sys_errno = errno});
    }
    if (IsReady(ended)) return {};
    if (IsReady(stop) || IsReady(broken)) {
      output.Abandon();
      (void)execution.Cancel();  // Ignoring the answer, because it is idempotent.
      if (IsReady(stop)) stop.fd = -1;
      if (IsReady(broken)) broken.fd = -1;
    }
    if (IsReady(resized)) PassSizeOn(*window, execution);
    if (congested || IsReady(in)) input->Pump();
  }
}

}  // namespace palmshed::cli
