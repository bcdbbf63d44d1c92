#include "kernel/task_clock.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>

#include "base/result.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::kernel {

Result<TaskClock> TaskClock::Open(pid_t process) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_TASK_CLOCK;
  attributes.inherit = 1;
  // perf_event_paranoid 2 demands both of an ordinary user. They take nothing away from this clock.
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  const long fd =
      ::syscall(SYS_perf_event_open, &attributes, process, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd >= 0) return TaskClock(UniqueFd(static_cast<int>(fd)));
  // Debian's perf_event_paranoid 3 and a container's filter say EACCES or EPERM.
  const bool refused = errno == EACCES || errno == EPERM || errno == ENOSYS || errno == ENOENT;
  return std::unexpected(
      SysError(refused ? ErrorCode::kUnsupported : ErrorCode::kUnknown, "perf_event_open", errno));
}

Result<std::chrono::nanoseconds> TaskClock::Read() const {
  std::uint64_t count = 0;
  PALMSHED_TRY(const std::size_t size,
               sys::Read(fd_.get(), std::as_writable_bytes(std::span(&count, 1))));
  if (size != sizeof count) return std::unexpected(SysError("read", EIO, "task clock"));
  return std::chrono::nanoseconds(static_cast<std::int64_t>(count));
}

}  // namespace palmshed::kernel
