#include "backends/native/disk_gauge.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <expected>
#include <utility>

#include "base/faults.h"
#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "kernel/deleted_files.h"
#include "palmshed/error.h"
#include "workspace/disk_usage.h"
#include "workspace/remove_newer.h"

namespace palmshed::backends::native {
namespace {

using workspace::CountOnce;
using workspace::DiskAmount;
using workspace::DiskUsage;

/// Walks in a row that a program may lead astray.
constexpr int kMostAttempts = 8;
constexpr std::uint64_t kStatBlock = 512;

/// Opened for every measurement: an idle sandbox holds no descriptor for it.
struct Roots {
  UniqueFd workspace;
  UniqueFd tmp;

  static Result<Roots> Open(const DiskPlace& place) {
    constexpr int kFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW;
    PALMSHED_TRY(UniqueFd workspace, sys::Open(place.workspace, kFlags));
    PALMSHED_TRY(UniqueFd tmp, sys::Open(place.tmp, kFlags));
    return Roots{.workspace = std::move(workspace), .tmp = std::move(tmp)};
  }

  std::array<BorrowedFd, 2> Fds() const { return {workspace.get(), tmp.get()}; }
};

/// clock_gettime(2): what this thread has had of the processors.
std::chrono::nanoseconds SpentByThisThread() {
  timespec spent{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
}

Result<DiskFree> FreeOn(BorrowedFd fd) {
  PALMSHED_TRY(const struct statvfs st, sys::Fstatvfs(fd));
  return DiskFree{.bytes = st.f_bfree * st.f_frsize, .inodes = st.f_ffree};
}

Result<DiskUsage> UsageOf(const Roots& roots, const DiskAmount& bound, CountOnce once) {
  for (int attempt = 1;; ++attempt) {
    DiskUsage usage(bound, once);
    auto added = usage.AddTrees(roots.Fds());
    if (added) return usage;
    if (added.error().sys_errno != EAGAIN || attempt == kMostAttempts) {
      return std::unexpected(std::move(added.error()));
    }
  }
}

}  // namespace

Result<DiskMeasure> DiskGauge::Measure(const DiskAmount& bound, CountOnce once,
                                       bool with_processes) const {
  const auto begin = SpentByThisThread();
  PALMSHED_TRY(const Roots roots, Roots::Open(place_));
  PALMSHED_TRY(const DiskFree free, FreeOn(roots.workspace.get()));
  PALMSHED_TRY(DiskUsage usage, UsageOf(roots, bound, once));
  const bool unnamed = with_processes && !Faulty("deleted-files-are-free");
  if (unnamed && place_.init > 0 && !usage.over()) {
    kernel::ForEachDeletedFile(place_.init, [&](const struct stat& st) {
      // Of the host's own deleted files, such as replaced libraries, none is the sandbox's.
      if (st.st_uid != place_.owner || !usage.IsHere(st.st_dev)) return;
      usage.AddUnnamed({.device = st.st_dev, .inode = st.st_ino},
                       static_cast<std::uint64_t>(st.st_blocks) * kStatBlock);
    });
  }
  return DiskMeasure{.usage = std::move(usage), .free = free, .took = SpentByThisThread() - begin};
}

Result<DiskFree> DiskGauge::Free() const {
  PALMSHED_TRY(const UniqueFd fd, sys::Open(place_.workspace, O_PATH | O_DIRECTORY | O_NOFOLLOW));
  return FreeOn(fd.get());
}

bool DiskGauge::RemoveNewer(const workspace::Newness& newness) const {
  const auto roots = Roots::Open(place_);
  return roots && workspace::RemoveNewer(roots->Fds(), newness);
}

}  // namespace palmshed::backends::native
