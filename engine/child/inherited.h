// What the helper does not take over from whoever started it.
#pragma once

namespace palmshed::child {

/// Signal dispositions and mask, umask, session, cwd, nice value, I/O priority, scheduler,
/// affinity, timer slack, huge pages, personality, oom_score_adj, standard streams, descriptors
/// above the helper's own. Best effort where the kernel asks for privilege to undo what was
/// inherited (a nice value, SCHED_IDLE, a lowered oom_score_adj): there the value stays and nothing
/// is gained by it. A negative errno where there is no /dev/null for the standard streams.
long ResetInherited();

/// Lifts the soft limits that could end or starve the helper itself up to their hard limits; a
/// workload's limits are set from a table of their own.
void LiftOwnLimits();

}  // namespace palmshed::child
