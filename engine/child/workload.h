// The workload between vfork and exec: a child in init's memory, on a stack of its slot's.
#pragma once

#include <cstdint>
#include <type_traits>

#include "child/failure.h"
#include "child/terminal.h"
#include "child/wire.h"

namespace palmshed::child {

/// Everything the child needs, prepared beforehand, and where it says what went wrong.
struct WorkloadPlan {
  int stdio[3];  ///< Unless there is a terminal.
  TerminalPlan terminal;
  bool settled;  ///< SettleWorkload was called.
  std::uint32_t rlimit_count;
  const Rlimit* rlimits;
  std::uint64_t file_bytes;   ///< RLIMIT_FSIZE; this and the next two: 0 for none.
  std::uint64_t cpu_seconds;  ///< RLIMIT_CPU
  std::uint64_t processes;    ///< RLIMIT_NPROC
  std::uint64_t mark;         ///< Hard RLIMIT_RTTIME, by which executions are told apart; 0: none.
  const char* directory;
  const char* const* paths;  ///< `path_count` candidates, as execvp(3) would try them.
  std::uint32_t path_count;
  const char* const* arguments;
  const char* const* environment;
  Failure failure;  ///< Written by the child.
};
static_assert(std::is_trivially_copyable_v<WorkloadPlan>);

/// What does not depend on the program: a session of its own, and the sandbox's limits.
Failure SettleWorkload(const Rlimit* rlimits, std::uint32_t count);

/// Runs in the child; does not return. `plan` is a WorkloadPlan.
void BecomeWorkloadInChild(void* plan);

}  // namespace palmshed::child
