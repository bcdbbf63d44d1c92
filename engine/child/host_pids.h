// A sandbox in the host's pid namespace, where user namespaces are refused.
//
// There, kill(-1) reaches every process of the user unless a Landlock scope stops it. So nothing
// serves before the scope has been seen to work: the supervisor, which could be signalled before
// init confined itself, answers EPERM afterwards, to init, to the guard and to every slot.
//
// PID 1 of a namespace takes everything down with it; here a guard does. It is a process in init's
// own Landlock domain, not above it, so that its kill(-1) ends exactly this sandbox, at once and
// whatever forks meanwhile. Workloads cannot signal it: their domains lie below. It holds what init
// holds, socket and locks among it, so that for the engine the sandbox ends when its last process
// has. Init watches the guard in turn.
#pragma once

#include "child/failure.h"
#include "child/pool.h"
#include "child/wire.h"

namespace palmshed::child {

/// Before init confines itself: opens the list of processes, which it may not do later, and shows
/// that the supervisor can be signalled. Refuses root, whose kill(-1) nothing but the scope bounds.
Failure EnterHostPids(const InitConfig& config, Pool* pool);

/// Whether the calling thread's signals stay in the sandbox; kSuccess in a pid namespace.
Failure ProveSignalScope(const Pool& pool);

/// Once init is confined and before it starts anything; `pool->guard` is the guard's pidfd.
Failure StartGuard(Pool* pool);

/// From init or guard: kills everything of the sandbox but the caller.
void KillSandbox();

}  // namespace palmshed::child
