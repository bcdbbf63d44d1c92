// Pairs of a host path and a sandbox path, as `--copy` and `-v` take them.
#pragma once

#include <string>
#include <string_view>

#include "palmshed/error.h"
#include "palmshed/options.h"

namespace palmshed::cli {

/// What to copy into the workspace before the start.
struct CopySpec {
  std::string source{};  ///< Host path.
  std::string target{};  ///< Path in the workspace; "." is the workspace itself.
};

/// Parses "SRC[:DST]". The last colon separates. Without DST, and below a DST that ends in '/', the
/// copy keeps its name; the content of "." and ".." goes to the directory itself.
Result<CopySpec> ParseCopy(std::string_view text);

/// Parses "SRC:DST[:ro|:rw]", read-only by default. A relative SRC is taken from `directory`,
/// which is empty when there is none.
Result<Mount> ParseVolume(std::string_view text, std::string_view directory);

}  // namespace palmshed::cli
