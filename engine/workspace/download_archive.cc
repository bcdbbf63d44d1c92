// The member of Workspace that gives an archive. A program may change the tree meanwhile: what is
// read is opened by its name in a directory that is open already, never through a link, so that it
// is of this workspace whatever the program puts in its place.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/files.h"
#include "palmshed/streams.h"
#include "workspace/archive_budget.h"
#include "workspace/path.h"
#include "workspace/resolve.h"
#include "workspace/tar_writer.h"
#include "workspace/walk_tree.h"
#include "workspace/workspace.h"

namespace palmshed::workspace {
namespace {

constexpr std::uint32_t kPermissionBits = 0777;
constexpr std::size_t kChunk = 256U << 10;

/// The name stands for something else than a moment ago, or for nothing.
bool HasChanged(const Error& error) {
  return error.sys_errno == ENOENT || error.sys_errno == ELOOP || error.sys_errno == ENOTDIR ||
         error.sys_errno == EINVAL || error.sys_errno == ENXIO;
}

class Packing final : public TreeVisitor {
 public:
  Packing(TarWriter& archive, ArchiveBudget& budget)
      : archive_(archive), budget_(budget), chunk_(kChunk) {}

  bool See(BorrowedFd directory, const char* name, const struct statx& st) override {
    auto added = Add(directory, name, st);
    if (added) return true;
    error_ = std::move(added.error());
    return false;
  }
  void Enter(const char* name) override { prefix_.append(name).append("/"); }
  void Leave(BorrowedFd /*parent*/, const char* name, const struct statx& /*st*/) override {
    prefix_.resize(prefix_.size() - std::string_view(name).size() - 1);
  }

  /// What ended the walk before its end.
  std::optional<Error> TakeError() { return std::move(error_); }

 private:
  Result<void> Add(BorrowedFd directory, const std::string& name, const struct statx& st) {
    PALMSHED_TRY_VOID(budget_.CheckTime());
    PALMSHED_TRY_VOID(budget_.AddEntry());
    TarEntry entry{.name = prefix_ + name,
                   .mode = st.stx_mode & kPermissionBits,
                   .modified = st.stx_mtime.tv_sec};
    if (S_ISREG(st.stx_mode)) return AddFile(directory, name, std::move(entry));
    if (S_ISLNK(st.stx_mode)) return AddLink(directory, name, std::move(entry));
    if (!S_ISDIR(st.stx_mode)) return Skip(entry);
    entry.kind = TarKind::kDirectory;
    entry.name += '/';
    return archive_.Add(entry);
  }

  Result<void> AddLink(BorrowedFd directory, const std::string& name, TarEntry entry) {
    auto target = sys::ReadlinkAt(directory, name);
    if (!target && HasChanged(target.error())) return Skip(entry);
    if (!target) return Refused(entry, target.error());
    entry.kind = TarKind::kSymlink;
    entry.target = *std::move(target);
    return archive_.Add(entry);
  }

  Result<void> AddFile(BorrowedFd directory, const std::string& name, TarEntry entry) {
    // O_NONBLOCK: see OpenRegular.
    auto fd = sys::OpenAt(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (!fd && HasChanged(fd.error())) return Skip(entry);
    if (!fd) return Refused(entry, fd.error());
    const auto st = sys::Fstat(fd->get());
    if (!st) return Refused(entry, st.error());
    if (!S_ISREG(st->st_mode)) return Skip(entry);
    const auto size = static_cast<std::uint64_t>(st->st_size);
    PALMSHED_TRY_VOID(budget_.AddBytes(size));
    entry.mode = st->st_mode & kPermissionBits;
    entry.modified = st->st_mtim.tv_sec;
    entry.size = size;
    PALMSHED_TRY_VOID(archive_.Add(entry));
    return CopyContent(fd->get(), entry, size);
  }

  Result<void> CopyContent(BorrowedFd fd, const TarEntry& entry, std::uint64_t left) {
    while (left > 0) {
      PALMSHED_TRY_VOID(budget_.CheckTime());
      const std::size_t want = std::min<std::uint64_t>(left, chunk_.size());
      const auto size = sys::Read(fd, std::span(chunk_).first(want));
      if (!size) return Refused(entry, size.error());
      if (*size == 0) return std::unexpected(Problem(entry, "got shorter while it was read"));
      PALMSHED_TRY_VOID(archive_.Write(std::span(chunk_).first(*size)));
      left -= *size;
    }
    return {};
  }

  Result<void> Skip(const TarEntry& entry) {
    budget_.Skip(entry.name);
    return {};
  }
  static Error Problem(const TarEntry& entry, std::string_view problem) {
    return {.code = ErrorCode::kFsError,
            .message = entry.name + " " + std::string(problem),
            .field = "path"};
  }
  static Result<void> Refused(const TarEntry& entry, const Error& cause) {
    Error error = Problem(entry, "cannot be read: " + cause.message);
    if (cause.code == ErrorCode::kOverloaded) error.code = cause.code;
    error.op = cause.op;
    error.sys_errno = cause.sys_errno;
    return std::unexpected(std::move(error));
  }

  TarWriter& archive_;
  ArchiveBudget& budget_;
  std::vector<std::byte> chunk_;
  std::string prefix_{};
  std::optional<Error> error_{};
};

}  // namespace

Result<ArchiveSummary> Workspace::DownloadArchive(std::string_view path, ByteSink& sink,
                                                  const ArchiveLimits& limits) const {
  PALMSHED_TRY(const SandboxPath from, SandboxPath::Parse(path));
  PALMSHED_TRY(const UniqueFd top,
               OpenInside(root_.get(), from, O_RDONLY | O_DIRECTORY | O_NONBLOCK));
  ArchiveBudget budget(limits);
  TarWriter archive(sink);
  Packing packing(archive, budget);
  auto walked = WalkTree(top.get(), packing);
  if (auto error = packing.TakeError()) return std::unexpected(*std::move(error));
  if (!walked) return std::unexpected(FileError(walked.error(), from));
  PALMSHED_TRY_VOID(archive.Finish());
  return budget.TakeSummary();
}

}  // namespace palmshed::workspace
