// How much of the host's disk a sandbox takes.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "palmshed/error.h"
#include "workspace/disk_usage.h"
#include "workspace/remove_newer.h"

namespace palmshed::backends::native {

/// Where a sandbox's files are.
struct DiskPlace {
  std::string workspace{};  ///< On the host, as is the next.
  std::string tmp{};
  std::uint32_t owner = 0;  ///< Whose its files are.
  pid_t init = -1;          ///< Its processes are this one's descendants; -1: it has none.
};

/// What a file system has left for everybody: quick to ask, and so a hint.
struct DiskFree {
  std::uint64_t bytes = 0;
  std::uint64_t inodes = 0;
};

/// What was found, and what finding it took.
struct DiskMeasure {
  workspace::DiskUsage usage;
  DiskFree free{};                  ///< When it began.
  std::chrono::nanoseconds took{};  ///< Processor time: waiting for one says nothing of the trees.
};

/// Any thread; blocks.
class DiskGauge {
 public:
  explicit DiskGauge(DiskPlace place) : place_(std::move(place)) {}

  /// The trees; and, `with_processes`, what those of the sandbox have deleted but hold on to.
  Result<DiskMeasure> Measure(const workspace::DiskAmount& bound, workspace::CountOnce once,
                              bool with_processes) const;
  Result<DiskFree> Free() const;
  /// False when something stayed that is, or may be, new.
  bool RemoveNewer(const workspace::Newness& newness) const;

 private:
  DiskPlace place_;
};

}  // namespace palmshed::backends::native
