#include "workspace/path.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

#include "base/result.h"
#include "palmshed/error.h"

namespace palmshed::workspace {
namespace {

/// Takes the next component off the front of `rest`; empty ones too.
std::string_view TakeComponent(std::string_view& rest) {
  const std::size_t slash = rest.find('/');
  const std::string_view component = rest.substr(0, slash);
  rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
  return component;
}

bool SaysNothing(std::string_view component) { return component.empty() || component == "."; }

/// The depth that `path` ends at, starting from `depth`; -1 when it rises above the root on its
/// way.
std::ptrdiff_t Walk(std::ptrdiff_t depth, std::string_view path) {
  while (!path.empty() && depth >= 0) {
    const std::string_view component = TakeComponent(path);
    if (SaysNothing(component)) continue;
    depth += component == ".." ? -1 : 1;
  }
  return depth;
}

}  // namespace

Result<SandboxPath> SandboxPath::Parse(std::string_view text) {
  if (text.contains('\0')) return std::unexpected(InvalidOption("path", "contains a NUL byte"));
  if (text.size() > kMaxPathBytes) {
    return std::unexpected(InvalidOption("path", "is longer than 4095 bytes"));
  }
  if (text.starts_with('/')) {
    return std::unexpected(Error{.code = ErrorCode::kFsError,
                                 .message = std::string(text) + " leaves the workspace: it is " +
                                            "absolute, and paths are relative to the workspace",
                                 .field = "path"});
  }
  SandboxPath path;
  path.given_ = text;
  std::size_t components = 0;
  bool ends_in_nothing = false;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view component = TakeComponent(rest);
    ends_in_nothing = SaysNothing(component);
    if (ends_in_nothing) continue;
    if (++components > 1) path.parent_ = path.Text();
    path.name_ = component;
  }
  path.directory_only_ = ends_in_nothing || text.ends_with('/');
  if (components > kMaxPathComponents) {
    return std::unexpected(InvalidOption("path", "has more than 256 components"));
  }
  return path;
}

std::string SandboxPath::Text() const {
  if (IsRoot()) return ".";
  return parent_ == "." ? name_ : parent_ + "/" + name_;
}

bool LinkStaysInside(std::size_t depth, std::string_view target) {
  return !target.starts_with('/') && Walk(static_cast<std::ptrdiff_t>(depth), target) >= 0;
}

std::size_t DepthOf(std::string_view path) {
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(Walk(0, path), 0));
}

}  // namespace palmshed::workspace
