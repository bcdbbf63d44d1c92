// Putting the entries of an archive into a directory of a workspace.
//
// Theory of operation. Every entry is reached from the directory's descriptor anew, by a path that
// follows no link at all (openat2(2), RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS), whoever made the
// link: the archive itself, the program that runs meanwhile, or somebody long before. What is made
// there is made under a temporary name and renamed, so a link that stands in the last place is
// replaced and not followed. A program that moves directories about can make an entry land in
// another directory of its own workspace, never outside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "workspace/archive_budget.h"
#include "workspace/archive_reader.h"
#include "workspace/disk_account.h"
#include "workspace/path.h"
#include "workspace/resolve.h"

namespace palmshed::workspace {

/// Where the entries go.
struct ExtractionPlace {
  BorrowedFd workspace;  ///< For the account alone.
  BorrowedFd into;
  std::size_t depth = 0;  ///< Levels of `into` below the workspace.
  Owner owner{};
  DiskAccount* account = nullptr;
};

class Extraction {
 public:
  /// What `place` names, and `budget`, are borrowed for the life of this object.
  Extraction(const ExtractionPlace& place, ArchiveBudget& budget)
      : place_(place), budget_(budget) {}

  /// Until the end of the archive, or to the first entry that is refused, which the error names.
  Result<void> All(ArchiveReader& archive);

 private:
  Result<void> Add(ArchiveReader& archive, const ArchiveEntry& entry);
  Result<void> AddFile(ArchiveReader& archive, const ArchiveEntry& entry, const Leaf& leaf);
  Result<void> AddHardLink(const ArchiveEntry& entry, const Leaf& leaf) const;
  Result<void> CheckReplaceable(const ArchiveEntry& entry, const Leaf& leaf) const;
  Result<Leaf> OpenLeafOf(const std::string& name, const SandboxPath& path);
  /// Opens a directory, O_PATH, making what is missing of it; `mode` is for the last component.
  Result<UniqueFd> OpenDirectory(const std::string& name, const std::string& path,
                                 std::uint32_t mode);
  Result<UniqueFd> MakeDirectories(const std::string& path, std::uint32_t mode);
  Result<void> ReserveForName() const;

  ExtractionPlace place_;
  ArchiveBudget& budget_;
};

}  // namespace palmshed::workspace
