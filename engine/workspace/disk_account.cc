#include "workspace/disk_account.h"

#include <cstdint>
#include <string>

#include "palmshed/error.h"
#include "workspace/disk_usage.h"

namespace palmshed::workspace {

Error QuotaExceeded(std::uint64_t quota, std::uint64_t used, const DiskAmount& more) {
  return {.code = ErrorCode::kDiskQuotaExceeded,
          .message = "writing " + std::to_string(more.bytes) + " bytes in " +
                     std::to_string(more.inodes) + " files would exceed the disk quota of " +
                     std::to_string(quota) + " bytes, of which " + std::to_string(used) +
                     " are used",
          .field = "diskQuota",
          .remedy = "Remove files, or make the sandbox with a larger diskQuota."};
}

}  // namespace palmshed::workspace
