// How much memory a process has, from the cheap and rough to the dear and exact (proc(5)).
//
// `proc` is a directory of /proc; `process` is a path in it, "PID" or "PID/task/TID": where the
// first thread of a process has ended, only another one's files tell of its memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::kernel {

/// An inode of a file system in memory.
struct ShmemFile {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  auto operator<=>(const ShmemFile&) const = default;
};

/// Of /proc/PID/statm: a few microseconds. Swap is not in it.
struct ResidentPages {
  std::uint64_t anonymous = 0;  ///< In bytes, as is all that follows.
  std::uint64_t shared = 0;     ///< Mapped files, page cache and memory shared alike.
};
Result<ResidentPages> ReadResident(BorrowedFd proc, const std::string& process);

/// Without page cache. Swap counts as anonymous.
struct MemoryUse {
  std::uint64_t anonymous = 0;
  std::uint64_t shmem = 0;  ///< Mapped pages of tmpfs, memfds, shared and System V segments.
};
/// Of /proc/PID/status: what several processes share is in each of them.
Result<MemoryUse> ReadResidentUse(BorrowedFd proc, const std::string& process);
/// Of /proc/PID/smaps_rollup: what n processes share is in each of them at an nth. Walks the page
/// tables. Needs the right to inspect the process.
Result<MemoryUse> ReadProportionalUse(BorrowedFd proc, const std::string& process);
/// Of /proc/PID/smaps: the proportional part of what is mapped of `device` (MemfdDevice), but of
/// none of `files` and, with `sysv_counted`, of no segment of System V.
Result<std::uint64_t> ReadOtherShmem(BorrowedFd proc, const std::string& process,
                                     std::uint64_t device,
                                     const std::map<ShmemFile, std::uint64_t>& files,
                                     bool sysv_counted);

/// Adds the memfds that a process holds by descriptor, with the bytes allocated to each. `device`
/// is that of MemfdDevice.
Result<void> AddMemfds(BorrowedFd proc, const std::string& process, std::uint64_t device,
                       std::map<ShmemFile, std::uint64_t>& found);
/// Of the kernel's own tmpfs, where memfds, shared anonymous mappings and System V segments are.
Result<std::uint64_t> MemfdDevice();

/// What a file system in memory holds, files that have no name any more included.
Result<std::uint64_t> TmpfsUse(BorrowedFd directory);
/// What the System V segments of a namespace hold; `table` is its /proc/sysvipc/shm, opened from
/// within.
Result<std::uint64_t> SysvUse(BorrowedFd table);

/// The parsers of the above.
std::optional<ResidentPages> ParseStatm(std::string_view text, std::uint64_t page_size);
std::uint64_t SumSysv(std::string_view text);
std::uint64_t SumOtherShmem(std::string_view smaps, std::uint64_t device,
                            const std::map<ShmemFile, std::uint64_t>& files, bool sysv_counted);

}  // namespace palmshed::kernel
