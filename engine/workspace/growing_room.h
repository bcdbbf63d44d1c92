// Room on a disk with a quota for something whose size shows only while it is written.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "workspace/disk_account.h"
#include "workspace/disk_usage.h"

namespace palmshed::workspace {

/// Asks an account for more whenever what was granted does not do. Going out of scope ends what was
/// granted. Without an account there is always room.
class GrowingRoom {
 public:
  /// All three are borrowed for the life of this object. `less`: what is given back at the end.
  GrowingRoom(DiskAccount* account, BorrowedFd workspace, const DiskAmount& less)
      : account_(account), workspace_(workspace), less_(less) {}

  /// For one file of so many bytes: the errors of DiskAccount::Reserve.
  Result<void> Ensure(std::uint64_t bytes);
  /// It has been written.
  void Done();

 private:
  Result<void> Reserve(const DiskAmount& more);

  DiskAccount* account_;
  BorrowedFd workspace_;
  DiskAmount less_;
  std::uint64_t granted_ = 0;
  std::vector<std::unique_ptr<DiskTicket>> tickets_{};
};

}  // namespace palmshed::workspace
