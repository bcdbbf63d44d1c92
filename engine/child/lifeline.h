// Not outliving the engine, and being nobody's prey.
#pragma once

#include <signal.h>
#include <sys/prctl.h>

#include "child/raw.h"

namespace palmshed::child {

/// SIGKILL when the thread that started this process ends. A change of credentials clears it, so it
/// comes after the last one.
inline long DieWithParent() { return Prctl(PR_SET_PDEATHSIG, SIGKILL); }

/// Whether the process behind `pidfd` has ended. Asked once after DieWithParent: an end before that
/// sends no signal.
inline bool HasEnded(int pidfd) {
  pollfd watched{pidfd, POLLIN, 0};
  return Poll(&watched, 1, 0) != 0;
}

/// A process that shares our memory runs under the workload's uid until its exec; while we are not
/// dumpable, nobody can open, trace or write that memory through it. An exec and a change of
/// credentials make a process dumpable again.
inline long HideMemory() {
#ifdef PALMSHED_TEST_STAY_DUMPABLE
  return 0;  // The control of the test that attacks init's memory.
#else
  return Prctl(PR_SET_DUMPABLE, 0);
#endif
}

}  // namespace palmshed::child
