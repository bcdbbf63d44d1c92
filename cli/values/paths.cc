#include "cli/values/paths.h"

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "cli/values/flag_error.h"
#include "palmshed/error.h"
#include "palmshed/options.h"

namespace palmshed::cli {
namespace {

std::string BaseName(std::string_view path) {
  const std::size_t last = path.find_last_not_of('/');
  if (last == std::string_view::npos) return ".";
  path = path.substr(0, last + 1);
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name == ".." ? "." : std::string(name);
}

/// Takes ":ro" or ":rw" off the end; true for ":rw".
bool TakeWritable(std::string_view& text) {
  const bool writable = text.ends_with(":rw");
  if (writable || text.ends_with(":ro")) text.remove_suffix(3);
  return writable;
}

}  // namespace

Result<CopySpec> ParseCopy(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    if (text.empty()) return std::unexpected(FlagError("--copy", text, "needs a path (SRC[:DST])"));
    return CopySpec{.source = std::string(text), .target = BaseName(text)};
  }
  CopySpec copy{.source = std::string(text.substr(0, colon)),
                .target = std::string(text.substr(colon + 1))};
  if (copy.source.empty() || copy.target.empty()) {
    return std::unexpected(FlagError(
        "--copy", text,
        "needs a path on both sides of the colon (a path with a colon is written SRC:DST)"));
  }
  if (copy.target.ends_with('/')) copy.target += BaseName(copy.source);
  return copy;
}

Result<Mount> ParseVolume(std::string_view text, std::string_view directory) {
  std::string_view rest = text;
  const bool writable = TakeWritable(rest);
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == rest.size()) {
    return std::unexpected(FlagError("--volume", text, "must be SRC:DST[:ro|:rw]"));
  }
  std::string source(rest.substr(0, colon));
  if (source.front() != '/') {
    if (directory.empty()) {
      return std::unexpected(
          FlagError("--volume", text, "is relative, and the current directory is gone"));
    }
    source = std::string(directory) + "/" + source;
  }
  return Mount{.source = std::move(source),
               .target = std::string(rest.substr(colon + 1)),
               .read_only = !writable};
}

}  // namespace palmshed::cli
