// How much memory an execution uses, found by looking at its processes.
//
// What counts is what cannot be given up: anonymous pages (swapped out or not), and files in memory
// whether mapped or not. Page cache does not. Reading that exactly costs a walk through page
// tables, so each look begins with bounds that are cheap and goes on only while they straddle the
// limit:
//   1. resident sets, in which memory that is shared counts once for each process and page cache
//      counts too, plus files in memory: less than the limit is enough;
//   2. the same without page cache;
//   3. proportional sets: exact for anonymous memory; a mapped file in memory may count twice;
//   4. each mapping for itself: exact.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "kernel/process_memory.h"
#include "kernel/process_table.h"
#include "palmshed/error.h"

namespace palmshed::backends::native {

/// Where a sandbox has memory beside that of its processes.
struct MemoryPlaces {
  BorrowedFd proc = -1;            ///< The /proc that numbers are of.
  std::vector<UniqueFd> tmpfs{};   ///< Its file systems in memory.
  BorrowedFd sysv = -1;            ///< Its /proc/sysvipc/shm, opened inside; -1: unknown.
  std::uint64_t memfd_device = 0;  ///< kernel::MemfdDevice
};

/// For one execution. One thread at a time.
class MemoryMeter {
 public:
  /// What is in the places already is an earlier execution's and does not count.
  Result<void> Begin(const MemoryPlaces& places);
  struct Reading {
    std::uint64_t at_least = 0;  ///< Exact when more than the limit.
    std::uint64_t at_most = 0;   ///< Page cache may be in it.
  };
  Result<Reading> Measure(const MemoryPlaces& places,
                          const std::vector<kernel::ProcessStat>& members, std::uint64_t limit);
  std::uint64_t peak() const { return peak_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Process {
    std::string path;
    kernel::ResidentPages resident;
    const kernel::ProcessStat* stat;
  };
  /// In files, by whether processes may have them mapped as well.
  struct Files {
    std::uint64_t bytes = 0;
    std::map<kernel::ShmemFile, std::uint64_t> memfds{};
  };

  static Result<std::uint64_t> PlacesUse(const MemoryPlaces& places);
  Result<Files> MeasureFiles(const MemoryPlaces& places,
                             const std::vector<Process>& processes) const;
  Result<std::vector<Process>> ReadProcesses(const MemoryPlaces& places,
                                             const std::vector<kernel::ProcessStat>& members);
  void DropSharers(std::vector<Process>& processes);
  Result<std::uint64_t> MeasureExactly(const MemoryPlaces& places,
                                       const std::vector<Process>& processes, const Files& files,
                                       std::uint64_t limit) const;

  std::uint64_t places_before_ = 0;
  std::uint64_t peak_ = 0;
  std::uint64_t bound_at_peak_ = 0;  ///< What was the bound when the peak was last measured.
  std::map<kernel::ProcessId, Clock::time_point> sharers_;
};

}  // namespace palmshed::backends::native
