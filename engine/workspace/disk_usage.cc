#include "workspace/disk_usage.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "workspace/walk_tree.h"

namespace palmshed::workspace {
namespace {

constexpr std::uint64_t kStatBlock = 512;  // stat(2), st_blocks: whatever the file system has.

/// Of those that were born in one tick of a clock.
constexpr std::size_t kMostRemembered = 4096;

}  // namespace

FileId IdOf(const struct statx& st) {
  return {.device = makedev(st.stx_dev_major, st.stx_dev_minor), .inode = st.stx_ino};
}

FileTime BirthOf(const struct statx& st) {
  return {.seconds = st.stx_btime.tv_sec, .nanoseconds = st.stx_btime.tv_nsec};
}

class UsageVisitor final : public TreeVisitor {
 public:
  explicit UsageVisitor(DiskUsage& usage) : usage_(usage) {}
  bool See(BorrowedFd, const char*, const struct statx& st) override {
    usage_.NoteBirth(st);
    usage_.Add(st);
    return !usage_.over();
  }

 private:
  DiskUsage& usage_;
};

void DiskUsage::Add(const struct statx& st) {
  const FileId id = IdOf(st);
  const bool maybe_again =
      once_ == CountOnce::kAlways || (!S_ISDIR(st.stx_mode) && st.stx_nlink > 1);
  if (maybe_again && !counted_.insert(id).second) return;
  devices_.insert(id.device);
  amount_.bytes += st.stx_blocks * kStatBlock;
  ++amount_.inodes;
  if (S_ISREG(st.stx_mode)) largest_ = std::max<std::uint64_t>(largest_, st.stx_size);
}

void DiskUsage::NoteBirth(const struct statx& st) {
  if ((st.stx_mask & STATX_BTIME) == 0) births_known_ = false;
  const FileTime born = BirthOf(st);
  if (born < newest_) return;
  if (born > newest_) newest_files_.clear();
  newest_ = born;
  if (newest_files_.size() <= kMostRemembered) newest_files_.push_back(IdOf(st));
}

std::optional<std::vector<FileId>> DiskUsage::TakeNewestFiles() {
  if (newest_files_.size() > kMostRemembered) return std::nullopt;
  return std::move(newest_files_);
}

Result<void> DiskUsage::AddTrees(std::span<const BorrowedFd> roots) {
  UsageVisitor visitor(*this);
  for (const BorrowedFd root : roots) {
    PALMSHED_TRY(const struct statx st, sys::StatxAt(root, ""));
    Add(st);
    PALMSHED_TRY(const bool whole, WalkTree(root, visitor));
    if (!whole) return {};
  }
  return {};
}

void DiskUsage::AddUnnamed(FileId id, std::uint64_t bytes) {
  if (!counted_.insert(id).second) return;
  amount_.bytes += bytes;
  ++amount_.inodes;
}

}  // namespace palmshed::workspace
