// A path that names something in a workspace, checked for what needs no file system to be wrong.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "palmshed/error.h"

namespace palmshed::workspace {

inline constexpr std::size_t kMaxPathBytes = 4095;  ///< What the kernel takes, path_resolution(7).
inline constexpr std::size_t kMaxPathComponents =
    256;  ///< Bounds the work that one path can cause.

/// Relative to the root of a workspace. `..` is kept: where it leads is known to the kernel alone,
/// because a component before it may be a link.
class SandboxPath {
 public:
  /// INVALID_OPTIONS, field "path": NUL, too long, too many components. FS_ERROR: absolute.
  /// Empty and "." are the workspace itself.
  static Result<SandboxPath> Parse(std::string_view text);

  /// As the caller wrote it, for messages.
  const std::string& given() const { return given_; }
  /// Without empty and "." components; "." for the workspace itself.
  std::string Text() const;
  /// What Text() says before the last component; "." where that is the workspace itself.
  const std::string& parent() const { return parent_; }
  /// The last component; empty for the workspace itself.
  const std::string& name() const { return name_; }
  bool IsRoot() const { return name_.empty(); }
  /// It was written with a slash at the end: only a directory will do.
  bool directory_only() const { return directory_only_; }

 private:
  SandboxPath() = default;

  std::string given_;
  std::string parent_ = ".";
  std::string name_;
  bool directory_only_ = false;
};

/// True when a link `target`, found in a directory `depth` levels below the root of a workspace,
/// cannot name anything outside as it is written.
bool LinkStaysInside(std::size_t depth, std::string_view target);

/// How many levels below the root the directory `path` lies as it is written; never below zero.
std::size_t DepthOf(std::string_view path);

}  // namespace palmshed::workspace
