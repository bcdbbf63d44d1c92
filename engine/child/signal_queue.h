// Signals as something to poll for.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>

#include "child/raw.h"

namespace palmshed::child {

/// Blocks `signal` for the calling thread and those it makes, and returns a signalfd for it.
inline long OpenSignalQueue(int signal) {
  const std::uint64_t mask = std::uint64_t{1} << (signal - 1);
  const long blocked = Call(SYS_rt_sigprocmask, SIG_BLOCK, &mask, nullptr, sizeof mask);
  if (blocked < 0) return blocked;
  return Call(SYS_signalfd4, -1, &mask, sizeof mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

inline void DrainSignalQueue(int queue) {
  signalfd_siginfo taken[8];
  while (Call(SYS_read, queue, taken, sizeof taken) > 0) {
  }
}

}  // namespace palmshed::child
