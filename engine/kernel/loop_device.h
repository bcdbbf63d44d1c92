// A file as a disk (loop(4)), with a file system on it.
#pragma once

#include <cstdint>
#include <string>

#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::kernel {

/// Where mkfs.ext4(8) is; empty where there is none.
std::string FindMkfsExt4();

/// Makes a sparse file of that size at `path`, which must not exist, with an empty ext4 on it.
Result<void> MakeExt4Image(const std::string& mkfs, const std::string& path, std::uint64_t bytes,
                           std::uint64_t inodes);

/// A loop device that goes with its last user (LO_FLAGS_AUTOCLEAR): this descriptor, or a mount.
struct LoopDevice {
  UniqueFd fd{};
  std::string path{};
};

/// Needs the right to configure such devices: root's.
Result<LoopDevice> AttachLoopDevice(const std::string& image);

}  // namespace palmshed::kernel
