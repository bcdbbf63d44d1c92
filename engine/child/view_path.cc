#include "child/view_path.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "child/kernel_abi.h"
#include "child/raw.h"

namespace palmshed::child {
namespace {

// Makes the missing directories of `path`, which is cut at each slash in turn and put together
// again. Most entries go where others went before them.
long MakeDirectories(int root, char* path) {
  long parent = OpenInView(root, *path == '\0' ? "/" : path);
  if (parent != -ENOENT) return parent;
  parent = OpenInView(root, "/");
  for (char* start = path; parent >= 0 && *start != '\0';) {
    char* end = start;
    while (*end != '\0' && *end != '/') ++end;
    const char after = *end;
    *end = '\0';
    if (end != start) {
      (void)Call(SYS_mkdirat, parent, start, 0755);  // Its failure shows in the next line.
      Close(static_cast<int>(parent));
      parent = OpenInView(root, path);
    }
    *end = after;
    start = after == '/' ? end + 1 : end;
  }
  return parent;
}

}  // namespace

bool IsRoot(const char* path) { return path[0] == '/' && path[1] == '\0'; }

long IsDirectory(int fd) {
  struct stat status{};
  const long result = Call(SYS_fstat, fd, &status);
  if (result < 0) return result;
  return S_ISDIR(status.st_mode) ? 1 : 0;
}

long OpenInView(int root, const char* path) {
  const OpenHow how{O_PATH | O_CLOEXEC, 0, kResolveInRoot | kResolveNoMagicLinks};
  return Call(SYS_openat2, root, path, &how, sizeof how);
}

PlaceInView::~PlaceInView() { Forget(); }

void PlaceInView::Forget() {
  if (parent_ >= 0) Close(parent_);
  parent_ = -1;
}

bool PlaceInView::HoldsParent(const char* path, std::size_t length) const {
  return parent_ >= 0 && std::memcmp(path_, path, length) == 0 && path_[length] == '\0';
}

long PlaceInView::Open(int root, const char* path) {
  const std::size_t size = strnlen(path, sizeof path_);  // NOLINT(misc-include-cleaner): <cstring>
  if (size == sizeof path_) return -ENAMETOOLONG;
  if (path[0] != '/') return -EINVAL;
  const char* const slash = strrchr(path, '/');
  if (slash[1] == '\0') return -EINVAL;
  const auto length = static_cast<std::size_t>(slash - path);
  const bool same = HoldsParent(path, length);
  std::memcpy(path_, path, size + 1);
  path_[length] = '\0';
  leaf_ = path_ + length + 1;
  if (same) return 0;
  Forget();
  const long parent = MakeDirectories(root, path_);
  if (parent < 0) return parent;
  parent_ = static_cast<int>(parent);
  return 0;
}

}  // namespace palmshed::child
