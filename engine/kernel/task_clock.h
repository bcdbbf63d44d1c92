// The time that a process and all of its later descendants spend on a processor, counted by the
// kernel (perf_event_open(2), PERF_COUNT_SW_TASK_CLOCK, inherited).
//
// It counts threads, orphans and children that nobody waits for, at the precision of the scheduler.
// System time is counted too, although an ordinary user has to ask for user time alone where
// perf_event_paranoid is 2: the clock runs while the task does. One thing escapes it: when a
// process executes a program that it may not read, the kernel detaches counters
// (TaskClock.ProgramThatMayNotBeReadIsLost).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <utility>

#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::kernel {

/// Any thread.
class TaskClock {
 public:
  /// Counts from now on. `process` has one thread, and is one that the caller may inspect:
  /// PTRACE_MODE_READ, which an ordinary user has over a process in a user namespace of its own,
  /// dumpable or not. UNSUPPORTED where the host does not allow it.
  static Result<TaskClock> Open(pid_t process);
  /// Valid after the processes have ended, too.
  Result<std::chrono::nanoseconds> Read() const;

 private:
  explicit TaskClock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace palmshed::kernel
