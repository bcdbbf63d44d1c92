#include "child/tree.h"

#include <fcntl.h>
#include <sys/mount.h>

#include <cstdint>

#include "child/kernel_abi.h"
#include "child/raw.h"
#include "child/wire.h"

namespace palmshed::child {

long AttachTree(int tree, int directory, const char* target) {
  const unsigned to_flags = target[0] == '\0' ? kMoveMountToEmptyPath : 0U;
  return Call(SYS_move_mount, tree, "", directory, target, kMoveMountFromEmptyPath | to_flags);
}

namespace {

long Copy(int directory, const char* path, unsigned how, std::uint32_t flags) {
  const unsigned recursive = (flags & kViewRecursive) != 0 ? unsigned{AT_RECURSIVE} : 0U;
  const long tree =
      Call(SYS_open_tree, directory, path, kOpenTreeClone | O_CLOEXEC | recursive | how);
  if (tree < 0) return tree;
  MountAttributes attributes{kMountAttrNoSuid, 0, MS_PRIVATE, 0};
  if ((flags & kViewDevice) == 0) attributes.set |= kMountAttrNoDev;
  if ((flags & kViewWritable) == 0) attributes.set |= kMountAttrReadOnly;
  const long result = Call(SYS_mount_setattr, tree, "", unsigned{AT_EMPTY_PATH} | recursive,
                           &attributes, sizeof attributes);
  if (result >= 0) return tree;
  Close(static_cast<int>(tree));
  return result;
}

}  // namespace

long CopyTree(const char* path, std::uint32_t flags) { return Copy(AT_FDCWD, path, 0, flags); }

long CopyTree(int fd, std::uint32_t flags) { return Copy(fd, "", AT_EMPTY_PATH, flags); }

}  // namespace palmshed::child
