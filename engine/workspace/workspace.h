// The virtual file system of a sandbox: what the file API does, on a directory.
//
// The program inside may plant any link, FIFO or directory and change it at any time; the rules
// that keep the API inside the workspace are in resolve.h. Links: one in the middle of a path is
// followed while it stays inside. In the last place ReadFile, DownloadFile, List, Chmod and the
// calls that write a file follow it too, as a program would (WriteFile through a link replaces the
// link's target, not the link); Stat, Remove and Move act on the link itself. An absolute link
// counts as leaving, wherever it points.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/files.h"
#include "palmshed/streams.h"
#include "palmshed/units.h"
#include "workspace/disk_account.h"
#include "workspace/resolve.h"

namespace palmshed::workspace {

/// Largest file that ReadFile returns; DownloadFile has no such limit.
inline constexpr Bytes kMaxReadFile{1U << 30};
/// Most names that List returns, so that a flood of files cannot exhaust the engine's memory.
inline constexpr std::size_t kMaxListed = 100'000;

/// Any thread; calls may run at the same time. Blocks: not for the loop's thread. Errors of every
/// call: FS_ERROR (outside the workspace, or it failed), NOT_FOUND, INVALID_OPTIONS (field "path"
/// or "mode"), OVERLOADED; of those that write, ERR_DISK_QUOTA_EXCEEDED, and then nothing has been
/// written (of an archive: nothing more).
class Workspace {
 public:
  /// `root` is the directory, opened for reading or O_PATH. What the API makes is given to `owner`.
  /// Without an account there is no quota.
  explicit Workspace(UniqueFd root, Owner owner = std::nullopt,
                     std::shared_ptr<DiskAccount> account = nullptr);

  Result<std::string> ReadFile(std::string_view path) const;
  /// Atomic: a reader sees the old content or the new. Missing parents are made.
  Result<void> WriteFile(std::string_view path, std::span<const std::byte> content,
                         std::uint32_t mode) const;
  /// Sorted bytewise.
  Result<std::vector<DirEntry>> List(std::string_view path) const;
  Result<FileStat> Stat(std::string_view path) const;
  /// Missing parents are made; a directory that exists is left as it is.
  Result<void> MakeDirectory(std::string_view path, std::uint32_t mode) const;
  /// A directory that is not empty needs `recursive`.
  Result<void> Remove(std::string_view path, bool recursive) const;
  /// rename(2): replaces a file, a link, or an empty directory by a directory.
  Result<void> Move(std::string_view from, std::string_view to) const;
  Result<void> Chmod(std::string_view path, std::uint32_t mode) const;
  /// For working directories: an O_PATH descriptor, made with its parents if absent.
  Result<UniqueFd> OpenDirectoryMakingParents(std::string_view path) const;

  /// Copies a host file, or the content of a host directory with all below it, to `path`. A
  /// directory that does not exist there appears complete or not at all; into one that exists the
  /// files go one by one, each atomically. Permission bits and times of modification are kept;
  /// setuid, setgid and sticky are not. Links inside a tree stay links, and must not lead outside
  /// as they are written; special files are refused. `host_path` itself may be a link.
  Result<void> UploadFile(std::string_view host_path, std::string_view path) const;
  /// As Sandbox::UploadArchive. Room is asked for entry by entry, before each is written.
  Result<ArchiveSummary> UploadArchive(std::string_view path, ByteSource& source,
                                       const ArchiveLimits& limits = {}) const;
  /// As Sandbox::DownloadArchive.
  Result<ArchiveSummary> DownloadArchive(std::string_view path, ByteSink& sink,
                                         const ArchiveLimits& limits = {}) const;
  /// Copies a regular file to the host, atomically. `host_path` must be absent or a regular file.
  Result<void> DownloadFile(std::string_view path, std::string_view host_path) const;

 private:
  /// Writes once there is room for it.
  template <class Write>
  Result<void> InQuota(const DiskChange& change, Write write) const;
  Result<void> Upload(UniqueFd source, const struct stat& st, const std::string& from,
                      const SandboxPath& to) const;

  UniqueFd root_;
  Owner owner_;
  std::shared_ptr<DiskAccount> account_;
};

template <class Write>
Result<void> Workspace::InQuota(const DiskChange& change, Write write) const {
  if (!account_) return write();
  auto ticket = account_->Reserve(root_.get(), change);
  if (!ticket) return std::unexpected(std::move(ticket.error()));
  auto written = write();
  if (written) (*ticket)->Done();
  return written;
}

/// INVALID_OPTIONS, field "mode", unless it consists of permission bits only.
Result<void> CheckMode(std::uint32_t mode);
/// Opens a regular file of the workspace for reading; anything else is refused without waiting.
Result<UniqueFd> OpenRegular(BorrowedFd root, const SandboxPath& path);
/// FS_ERROR when a file of that name could not be replaced by another: FIFOs and the like.
Result<void> CheckReplaceable(const Leaf& leaf, const SandboxPath& path);

}  // namespace palmshed::workspace
