// Paths inside a view that is being built: resolved as if its root were "/", symlinks included.
#pragma once

#include <limits.h>

namespace palmshed::child {

bool IsRoot(const char* path);

/// 1 for a directory, 0 for anything else, or a negative errno.
long IsDirectory(int fd);

/// An O_PATH descriptor of what is at `path`, or a negative errno.
long OpenInView(int root, const char* path);

/// Where a new entry goes: the directory that holds it, made where it is missing, and its name.
class PathInView {
 public:
  PathInView() = default;
  PathInView(const PathInView&) = delete;
  PathInView& operator=(const PathInView&) = delete;
  ~PathInView();

  /// 0 or a negative errno; EINVAL for a relative path and for "/".
  long Open(int root, const char* path);
  int parent() const { return parent_; }
  const char* leaf() const { return leaf_; }

 private:
  int parent_ = -1;
  const char* leaf_ = nullptr;
  char path_[PATH_MAX];
};

}  // namespace palmshed::child
