// The document that `run --json FILE` leaves.
#pragma once

#include <string>
#include <string_view>

#include "cli/process/descriptor.h"
#include "palmshed/error.h"

namespace palmshed::cli {

/// Opened and emptied before the program starts: a path that cannot be written is known at once,
/// and a document of an earlier run cannot be taken for that of one which was killed.
class ResultFile {
 public:
  static Result<ResultFile> Open(const std::string& path);

  /// Writes the whole document and a newline.
  Result<void> Write(std::string_view document) const;

 private:
  ResultFile(std::string path, Descriptor file);

  std::string path_;
  Descriptor file_;
};

}  // namespace palmshed::cli
