// How much of a disk trees of files take.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <unordered_set>
#include <vector>

#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/units.h"

namespace palmshed::workspace {

/// What is taken: blocks that are allocated, not what sizes say, and files of whatever kind.
struct DiskAmount {
  std::uint64_t bytes = 0;
  std::uint64_t inodes = 0;

  bool operator==(const DiskAmount&) const = default;
  /// Either is more than that of `bound`.
  bool Exceeds(const DiskAmount& bound) const {
    return bytes > bound.bytes || inodes > bound.inodes;
  }
};
inline constexpr DiskAmount kNoBound{.bytes = std::numeric_limits<std::uint64_t>::max(),
                                     .inodes = std::numeric_limits<std::uint64_t>::max()};

/// A moment on the clock of a file system.
struct FileTime {
  std::int64_t seconds = 0;
  std::uint32_t nanoseconds = 0;
  auto operator<=>(const FileTime&) const = default;
};

struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileId&) const = default;
};

FileId IdOf(const struct statx& st);
FileTime BirthOf(const struct statx& st);

struct FileIdHash {
  std::size_t operator()(const FileId& id) const {
    return std::hash<std::uint64_t>()(id.inode * 0x9e3779b97f4a7c15U + id.device);
  }
};

/// How a file is told that has been counted already.
enum class CountOnce : std::uint8_t {
  kByLinks,  ///< Quick: files that say that they have several names. One that is renamed on the way
             ///< may be counted twice.
  kAlways,   ///< Every file is remembered.
};

/// Adds files up, each once however many names it has.
class DiskUsage {
 public:
  /// Adding up ends with what exceeds `bound`: a flood need not be counted to its end.
  explicit DiskUsage(DiskAmount bound = kNoBound, CountOnce once = CountOnce::kByLinks)
      : bound_(bound), once_(once) {}

  /// `roots` and everything below. EAGAIN as of WalkTree.
  Result<void> AddTrees(std::span<const BorrowedFd> roots);
  /// A file that no tree has a name for any more.
  void AddUnnamed(FileId id, std::uint64_t bytes);

  const DiskAmount& amount() const { return amount_; }
  bool over() const { return amount_.Exceeds(bound_); }
  /// Where the files are: a file elsewhere is not of these trees.
  bool IsHere(dev_t device) const { return devices_.contains(device); }
  std::uint64_t largest() const { return largest_; }  ///< Size of the largest file, holes included.
  /// The latest birth of what is below the roots.
  const FileTime& newest() const { return newest_; }
  /// What was born then; nullopt: too many to remember.
  std::optional<std::vector<FileId>> TakeNewestFiles();
  bool births_known() const { return births_known_; }  ///< Not every file system keeps them.

 private:
  friend class UsageVisitor;
  void Add(const struct statx& st);
  void NoteBirth(const struct statx& st);

  DiskAmount bound_;
  CountOnce once_;
  DiskAmount amount_{};
  std::uint64_t largest_ = 0;
  FileTime newest_{};
  std::vector<FileId> newest_files_{};
  bool births_known_ = true;
  std::set<dev_t> devices_{};
  std::unordered_set<FileId, FileIdHash> counted_{};
};

}  // namespace palmshed::workspace
