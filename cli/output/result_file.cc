#include "cli/output/result_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "cli/output/note.h"
#include "cli/process/descriptor.h"
#include "palmshed/error.h"

namespace palmshed::cli {
namespace {

std::unexpected<Error> FileError(const std::string& path, std::string_view op) {
  return std::unexpected(Error{.code = ErrorCode::kFsError,
                               .message = "--json " + path + ": " + NameErrno(errno),
                               .field = "--json",
                               .op = std::string(op),
                               .sys_errno = errno});
}

}  // namespace

ResultFile::ResultFile(std::string path, Descriptor file)
    : path_(std::move(path)), file_(std::move(file)) {}

Result<ResultFile> ResultFile::Open(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.valid()) return FileError(path, "open");
  return ResultFile(path, std::move(file));
}

Result<void> ResultFile::Write(std::string_view document) const {
  std::string text(document);
  text += '\n';
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(path_, "write");
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace palmshed::cli
