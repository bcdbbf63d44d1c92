#include "backends/native/storage.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <utility>

#include "backends/native/disk_meter.h"
#include "backends/native/host.h"
#include "backends/native/state.h"
#include "base/result.h"
#include "kernel/loop_device.h"
#include "kernel/sized_storage.h"
#include "palmshed/error.h"
#include "palmshed/options.h"
#include "plan/plan.h"
#include "workspace/disk_usage.h"
#include "workspace/resolve.h"

namespace palmshed::backends::native {
namespace {

using plan::Enforcement;
using plan::Offer;

constexpr char kUseDisk[] = R"(Use storage "disk")";

/// Only a view of the sandbox's own has a place of its own for each sandbox's files.
std::optional<Offer::Missing> NoPrivateView(const Offer& offer, StorageKind kind) {
  if (!kind.private_view) {
    return Offer::Missing{.reason = "it is part of the sandbox's own file view",
                          .remedy = R"(Leave osFilesystemIsolation on, or use storage "disk")"};
  }
  if (offer.private_view) return std::nullopt;
  return Offer::Missing{.reason = "the sandbox has no file view of its own to mount it in: " +
                                  offer.private_view_missing.reason,
                        .remedy = offer.private_view_missing.remedy};
}

Offer::Limit OfferMemory() {
  return {.enforcement = Enforcement::kKernel, .mechanism = "size of a tmpfs"};
}

Offer::Limit OfferLoop(StorageKind kind) {
  if (!kind.root) {
    return {.missing = {.reason = "only root can attach a loop device",
                        .remedy = R"(Run the engine as root, or use storage "memory" or "disk")"}};
  }
  if (::access("/dev/loop-control", R_OK | W_OK) != 0) {
    return {.missing = {.reason = "there is no /dev/loop-control",
                        .remedy = "sudo modprobe loop (in a container: give it loop devices)"}};
  }
  if (kernel::FindMkfsExt4().empty()) {
    return {
        .missing = {.reason = "there is no mkfs.ext4", .remedy = "sudo apt-get install e2fsprogs"}};
  }
  return {.enforcement = Enforcement::kKernel, .mechanism = "ext4 on a loop device"};
}

/// Of an image they take their room whether they are used or not: 3 % with a file in 8 KiB.
std::uint64_t InodesOfImage(std::uint64_t bytes) {
  constexpr std::uint64_t kBytesPerInode = 8192;
  constexpr std::uint64_t kLeast = 256;
  return std::max(kLeast, bytes / kBytesPerInode);
}

Error AsUnsupported(Error cause, const char* remedy) {
  Error error = Unsupported("storage", cause.message, remedy);
  error.op = std::move(cause.op);
  error.sys_errno = cause.sys_errno;
  return error;
}

Result<kernel::StorageTrees> MakeLoop(const kernel::StorageOrder& order, const std::string& image) {
  PALMSHED_TRY_VOID(
      kernel::MakeExt4Image(kernel::FindMkfsExt4(), image, order.bytes, order.inodes));
  return kernel::MountImage(order, image);
}

}  // namespace

void OfferStorage(Offer& offer, StorageKind kind) {
  offer.disk = {.enforcement = Enforcement::kSampled,
                .mechanism = "measuring the files, RLIMIT_FSIZE, seccomp"};
  const auto missing = NoPrivateView(offer, kind);
  offer.storage_memory = missing ? Offer::Limit{.missing = *missing} : OfferMemory();
  offer.storage_loop = missing ? Offer::Limit{.missing = *missing} : OfferLoop(kind);
}

bool InitMakesStorage(const Host& host, const plan::SandboxPlan& plan) {
  return plan.storage == Storage::kMemory && !host.root;
}

Result<std::optional<kernel::StorageTrees>> MakeStorage(const Host& host,
                                                        const plan::SandboxPlan& plan,
                                                        const SandboxHome& home,
                                                        workspace::Owner owner) {
  if (plan.storage == Storage::kDisk || InitMakesStorage(host, plan)) return std::nullopt;
  const workspace::DiskAmount size = AllowedBy(plan.ceilings.disk);
  const bool in_memory = plan.storage == Storage::kMemory;
  const kernel::StorageOrder order{.bytes = size.bytes,
                                   .inodes = in_memory ? size.inodes : InodesOfImage(size.bytes),
                                   .owner = owner.value_or(::geteuid()),
                                   .place = home.workspace_path()};
  auto trees = in_memory ? kernel::MakeMemoryStorage(order) : MakeLoop(order, home.image_path());
  if (trees) return std::optional(std::move(*trees));
  return std::unexpected(AsUnsupported(
      std::move(trees.error()),
      in_memory ? kUseDisk : R"(Use storage "disk" or "memory"; an image takes at least 2 MiB)"));
}

}  // namespace palmshed::backends::native
