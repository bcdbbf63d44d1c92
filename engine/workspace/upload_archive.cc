// The member of Workspace that takes an archive.
#include <fcntl.h>
#include <sys/types.h>

#include <cerrno>
#include <expected>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/files.h"
#include "palmshed/streams.h"
#include "workspace/archive_budget.h"
#include "workspace/archive_reader.h"
#include "workspace/extraction.h"
#include "workspace/new_directory.h"
#include "workspace/path.h"
#include "workspace/resolve.h"
#include "workspace/workspace.h"

namespace palmshed::workspace {
namespace {

constexpr mode_t kDirectoryMode = 0755;

/// Gives a directory that was just filled what it would have had from MakeOneDirectory.
Result<void> Finish(BorrowedFd directory, const Owner& owner) {
  if (owner) PALMSHED_TRY_VOID(sys::Fchown(directory, *owner, *owner));
  return sys::Fchmod(directory, kDirectoryMode);
}

}  // namespace

Result<ArchiveSummary> Workspace::UploadArchive(std::string_view path, ByteSource& source,
                                                const ArchiveLimits& limits) const {
  PALMSHED_TRY(const SandboxPath to, SandboxPath::Parse(path));
  ArchiveBudget budget(limits);
  PALMSHED_TRY(ArchiveReader archive, ArchiveReader::Open(source));
  const auto extract = [&](BorrowedFd into) {
    const ExtractionPlace place{.workspace = root_.get(),
                                .into = into,
                                .depth = DepthOf(to.Text()),
                                .owner = owner_,
                                .account = account_.get()};
    return Extraction(place, budget).All(archive);
  };
  auto there = OpenInside(root_.get(), to, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
  if (there) {
    PALMSHED_TRY_VOID(extract(there->get()));
    return budget.TakeSummary();
  }
  if (there.error().sys_errno != ENOENT) return std::unexpected(std::move(there.error()));
  PALMSHED_TRY(const SandboxPath unslashed, SandboxPath::Parse(to.Text()));
  PALMSHED_TRY(const Leaf leaf, OpenLeafToWrite(root_.get(), owner_, unslashed));
  auto made = MakeWhole(leaf, [&](BorrowedFd fd) -> Result<void> {
    PALMSHED_TRY_VOID(extract(fd));
    return Finish(fd, owner_);
  });
  // What had been extracted counted, and has been removed again.
  if (!made && account_) account_->NoteRemoval();
  if (!made && made.error().field.empty()) return std::unexpected(FileError(made.error(), to));
  if (!made) return std::unexpected(std::move(made.error()));
  return budget.TakeSummary();
}

}  // namespace palmshed::workspace
