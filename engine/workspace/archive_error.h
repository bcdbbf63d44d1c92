// What is wrong with an archive, as the file API reports it.
#pragma once

#include <string>
#include <string_view>

#include "palmshed/error.h"

namespace palmshed::workspace {

/// FS_ERROR, field "archive"; `problem` completes the sentence "the archive ...".
inline Error ArchiveError(std::string_view problem) {
  return {.code = ErrorCode::kFsError,
          .message = std::string("the archive ").append(problem),
          .field = "archive"};
}

/// As above, of one entry: "entry <name> of the archive ...".
inline Error EntryError(std::string_view name, std::string_view problem) {
  constexpr std::size_t kMost = 300;  // A name in an archive may be as long as it likes.
  std::string shown(name.substr(0, kMost));
  if (name.size() > kMost) shown += "...";
  return {.code = ErrorCode::kFsError,
          .message = "entry \"" + shown + "\" of the archive " + std::string(problem),
          .field = "archive"};
}

}  // namespace palmshed::workspace
