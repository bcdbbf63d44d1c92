// The processes of one execution: signalling them all, and ending those that its main process left.
#pragma once

#include <cstdint>

#include "child/pool.h"

namespace palmshed::child {

/// From the slot's own thread: sends `signal` to every process of its execution.
void SignalAll(Slot* slot, int signal);

/// From the slot's own thread, when the main process has been reaped: whether something is still
/// running.
bool HasLeftovers(const Slot& slot);

/// The same: returns when nothing is. Carries out orders meanwhile.
void AwaitLeftovers(Slot* slot);

/// From the slot's own thread, when the main process has been reaped: kills what is left and
/// returns when nothing is. True when something was still running.
bool KillLeftovers(Slot* slot);

}  // namespace palmshed::child
