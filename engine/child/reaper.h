// Orphans: processes whose parents ended before them are init's main thread's to reap.
#pragma once

#include <sys/resource.h>

#include <cstdint>

#include "child/pool.h"

namespace palmshed::child {

/// Main thread only. What an orphan used is counted for the execution that was the only live one.
void ReapOrphans(Pool* pool);

/// User and system time.
std::uint64_t CpuNs(const struct rusage& usage);
std::uint64_t MaxRssBytes(const struct rusage& usage);

}  // namespace palmshed::child
