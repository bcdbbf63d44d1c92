// Asking for room on a disk with a quota, before anything is written.
#pragma once

#include <memory>

#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "workspace/disk_usage.h"

namespace palmshed::workspace {

/// What a write through the API is going to take, and to give back by what it replaces.
struct DiskChange {
  DiskAmount more{};
  DiskAmount less{};
  bool grows = false;  ///< More may be asked for before it ends: nobody waits for its end.
};

/// A write that is under way. Going out of scope ends it.
class DiskTicket {
 public:
  virtual ~DiskTicket() = default;
  /// It has been done as it was asked for.
  virtual void Done() = 0;
};

/// The quota of one sandbox. Any thread. Blocks.
class DiskAccount {
 public:
  virtual ~DiskAccount() = default;
  /// ERR_DISK_QUOTA_EXCEEDED when there is no room for it, whatever becomes of the writes that are
  /// under way. `workspace` is its directory.
  virtual Result<std::unique_ptr<DiskTicket>> Reserve(BorrowedFd workspace,
                                                      const DiskChange& change) = 0;
  /// Something has been removed.
  virtual void NoteRemoval() = 0;
};

/// What a file of so many bytes takes, to be on the safe side.
constexpr DiskAmount RoomFor(std::uint64_t bytes) {
  constexpr std::uint64_t kBlock = 4096;
  return {.bytes = (bytes + kBlock - 1) / kBlock * kBlock, .inodes = 1};
}

inline DiskAmount& operator+=(DiskAmount& sum, const DiskAmount& more) {
  sum.bytes += more.bytes;
  sum.inodes += more.inodes;
  return sum;
}
/// Never less than nothing.
inline DiskAmount operator-(const DiskAmount& a, const DiskAmount& b) {
  return {.bytes = a.bytes > b.bytes ? a.bytes - b.bytes : 0,
          .inodes = a.inodes > b.inodes ? a.inodes - b.inodes : 0};
}

/// ERR_DISK_QUOTA_EXCEEDED: `used` of `quota` bytes are taken and `more` do not fit.
Error QuotaExceeded(std::uint64_t quota, std::uint64_t used, const DiskAmount& more);

}  // namespace palmshed::workspace
