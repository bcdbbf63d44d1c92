// Paths inside a view that is being built: resolved as if its root were "/", symlinks included.
#pragma once

#include <limits.h>

#include <cstddef>

namespace palmshed::child {

bool IsRoot(const char* path);

/// 1 for a directory, 0 for anything else, or a negative errno.
long IsDirectory(int fd);

/// An O_PATH descriptor of what is at `path`, or a negative errno.
long OpenInView(int root, const char* path);

/// Where a new entry goes: the directory that holds it, made where it is missing, and its name.
/// Entries mostly follow each other in one directory, so the last one stays open.
class PlaceInView {
 public:
  PlaceInView() = default;
  PlaceInView(const PlaceInView&) = delete;
  PlaceInView& operator=(const PlaceInView&) = delete;
  ~PlaceInView();

  /// 0 or a negative errno; EINVAL for a relative path and for "/".
  long Open(int root, const char* path);
  /// Something has been mounted: paths may lead elsewhere now.
  void Forget();
  int parent() const { return parent_; }
  const char* leaf() const { return leaf_; }

 private:
  bool HoldsParent(const char* path, std::size_t length) const;

  int parent_ = -1;
  const char* leaf_ = nullptr;
  char path_[PATH_MAX];  ///< Of the parent, ended by NUL, then the leaf.
};

}  // namespace palmshed::child
