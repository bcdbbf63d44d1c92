#include "kernel/sized_storage.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "base/worker.h"
#include "kernel/loop_device.h"
#include "palmshed/error.h"

namespace palmshed::kernel {
namespace {

using MakeMount = std::function<Result<UniqueFd>()>;

Result<void> Check(const char* op, int result) {
  if (result < 0) return std::unexpected(SysError(op, errno));
  return {};
}

Result<UniqueFd> Owned(const char* op, int fd) {
  if (fd < 0) return std::unexpected(SysError(op, errno));
  return UniqueFd(fd);
}

Result<void> Configure(BorrowedFd context, const char* key, const std::string& value) {
  return Check("fsconfig", ::fsconfig(context, FSCONFIG_SET_STRING, key, value.c_str(), 0));
}

Result<UniqueFd> FinishMount(BorrowedFd context) {
  PALMSHED_TRY_VOID(
      Check("fsconfig", ::fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0)));
  return Owned("fsmount",
               ::fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
}

Result<UniqueFd> MountTmpfs(const StorageOrder& order) {
  PALMSHED_TRY(const UniqueFd context, Owned("fsopen", ::fsopen("tmpfs", FSOPEN_CLOEXEC)));
  PALMSHED_TRY_VOID(Configure(context.get(), "size", std::to_string(order.bytes)));
  PALMSHED_TRY_VOID(Configure(context.get(), "nr_inodes", std::to_string(order.inodes)));
  PALMSHED_TRY_VOID(Configure(context.get(), "mode", "0700"));
  return FinishMount(context.get());
}

Result<UniqueFd> MountDevice(const std::string& device) {
  PALMSHED_TRY(const UniqueFd context, Owned("fsopen", ::fsopen("ext4", FSOPEN_CLOEXEC)));
  PALMSHED_TRY_VOID(Configure(context.get(), "source", device));
  return FinishMount(context.get());
}

Result<UniqueFd> MakeTree(BorrowedFd root, const StorageOrder& order, const std::string& name,
                          mode_t mode) {
  PALMSHED_TRY_VOID(sys::MkdirAt(root, name, 0700));
  PALMSHED_TRY_VOID(sys::LchownAt(root, name, order.owner, order.owner));
  PALMSHED_TRY_VOID(sys::ChmodAt(root, name, mode));
  return Owned("open_tree", ::open_tree(root, name.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
}

/// In a mount namespace of this thread's own, which goes with it.
Result<StorageTrees> MakeTreesHere(const StorageOrder& order, const MakeMount& make) {
  PALMSHED_TRY_VOID(Check("unshare", ::unshare(CLONE_NEWNS)));
  // Else the host would see what is mounted here.
  PALMSHED_TRY_VOID(Check("mount", ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr)));
  PALMSHED_TRY(const UniqueFd mounted, make());
  PALMSHED_TRY_VOID(Check(
      "move_mount",
      ::move_mount(mounted.get(), "", AT_FDCWD, order.place.c_str(), MOVE_MOUNT_F_EMPTY_PATH)));
  StorageTrees trees;
  PALMSHED_TRY(trees.workspace, MakeTree(mounted.get(), order, "workspace", 0700));
  // As of any /tmp; nobody else can reach it.
  PALMSHED_TRY(trees.tmp, MakeTree(mounted.get(), order, "tmp", 01777));
  return trees;
}

Result<StorageTrees> MakeTrees(const StorageOrder& order, const MakeMount& make) {
  std::optional<Result<StorageTrees>> trees;
  std::thread thread =
      StartQuietThread("palmshed-mount", [&] { trees = MakeTreesHere(order, make); });
  if (!thread.joinable()) return std::unexpected(SysError("clone", EAGAIN));
  thread.join();
  return std::move(*trees);
}

}  // namespace

Result<StorageTrees> MakeMemoryStorage(const StorageOrder& order) {
  return MakeTrees(order, [&] { return MountTmpfs(order); });
}

Result<StorageTrees> MountImage(const StorageOrder& order, const std::string& image) {
  PALMSHED_TRY(const LoopDevice device, AttachLoopDevice(image));
  return MakeTrees(order, [&] { return MountDevice(device.path); });
}

}  // namespace palmshed::kernel
