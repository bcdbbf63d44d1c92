// The processes of one execution: signalling them all, and ending those that its main process left.
#pragma once

#include <cstdint>

#include "child/pool.h"

namespace palmshed::child {

/// From the slot's own thread: sends `signal` to every process of its execution.
void SignalAll(const Slot& slot, int signal);

/// From the slot's own thread, when the main process has been reaped: kills what is left and
/// returns when nothing is. True when something was still running.
bool KillLeftovers(const Slot& slot);

}  // namespace palmshed::child
