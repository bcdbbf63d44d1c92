// A file system of a fixed size for the files of one sandbox, mounted nowhere.
#pragma once

#include <cstdint>
#include <string>

#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::kernel {

/// Two directories of one file system, as detached mounts (open_tree(2)): they go with the
/// descriptors, or with the mount namespace into which they are moved (move_mount(2)).
struct StorageTrees {
  UniqueFd workspace;
  UniqueFd tmp;
};

struct StorageOrder {
  std::uint64_t bytes = 0;
  std::uint64_t inodes = 0;
  std::uint32_t owner = 0;  ///< Whose the directories are.
  /// A directory of the host on which it is mounted for a moment, unseen by anybody: only what is
  /// in a mount namespace can be copied.
  std::string place{};
};

/// Both need the right to mount in the host's user namespace: root's. The programs that see the
/// trees need none, and the file systems take files from the host's users as well.
Result<StorageTrees> MakeMemoryStorage(const StorageOrder& order);
/// An ext4 on a loop device, which goes with the last mount; `image` as of MakeExt4Image.
Result<StorageTrees> MountImage(const StorageOrder& order, const std::string& image);

}  // namespace palmshed::kernel
