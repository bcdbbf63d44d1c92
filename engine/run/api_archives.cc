// The members of Sandbox that need libarchive, apart from the others: a program that uses neither
// is linked without it.
#include <string_view>

#include "base/result.h"
#include "palmshed/error.h"
#include "palmshed/files.h"
#include "palmshed/sandbox.h"
#include "palmshed/streams.h"
#include "run/sandbox.h"

namespace palmshed {
inline namespace v1 {

Result<ArchiveSummary> Sandbox::UploadArchive(std::string_view path, ByteSource& source,
                                              ArchiveLimits limits) {
  PALMSHED_TRY(auto files, state_->OpenWorkspace());
  return files.UploadArchive(path, source, limits);
}

Result<ArchiveSummary> Sandbox::DownloadArchive(std::string_view path, ByteSink& sink,
                                                ArchiveLimits limits) const {
  PALMSHED_TRY(auto files, state_->OpenWorkspace());
  return files.DownloadArchive(path, sink, limits);
}

}  // namespace v1
}  // namespace palmshed
