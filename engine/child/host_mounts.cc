// Theory of operation. The root of a sandbox's view is a small read-only file system that belongs
// to the launcher and of which all of its sandboxes have a copy, so no mount point can be made in
// it. A sandbox with host mounts gets a root of its own: the same entries, each the mount or the
// file that was there, and the host's trees among them.
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "child/failure.h"
#include "child/kernel_abi.h"
#include "child/raw.h"
#include "child/setup.h"
#include "child/view.h"
#include "child/wire.h"

namespace palmshed::child {
namespace {

constexpr std::size_t kNameBytes = 256;
constexpr std::size_t kTargetBytes = 4096;

// One ViewEntry and its strings.
struct OneRecord {
  ViewEntry entry;
  char strings[1 + kNameBytes + kTargetBytes + 8];
};

Failure Add(OwnView* view, ViewOp op, std::uint32_t flags, const char* name, const char* b) {
  const std::size_t name_bytes = std::strlen(name) + 1;
  const std::size_t b_bytes = std::strlen(b);
  if (name_bytes > kNameBytes || b_bytes > kTargetBytes) {
    return {Step::kAttachHostMounts, ENAMETOOLONG};
  }
  OneRecord record{};
  record.entry.op = op;
  record.entry.flags = flags;
  record.entry.mode = 0755;
  record.entry.bytes_a = static_cast<std::uint32_t>(name_bytes);
  record.entry.bytes_b = static_cast<std::uint32_t>(b_bytes);
  record.strings[0] = '/';
  std::memcpy(record.strings + 1, name, name_bytes);
  std::memcpy(record.strings + 1 + name_bytes, b, b_bytes);
  return view->Add({.bytes = &record, .size = sizeof record, .count = 1});
}

Failure AddLink(OwnView* view, int root, const char* name) {
  char target[kTargetBytes] = {};
  const long size = Call(SYS_readlinkat, root, name, target, sizeof target - 1);
  if (size < 0) return FailureIf(size, Step::kAttachHostMounts);
  return Add(view, ViewOp::kSymlink, 0, name, target);
}

// As it is: what the mount itself forbids it forbids still.
Failure AddSame(OwnView* view, const char* name) {
  constexpr std::uint32_t kAsItIs = kViewRecursive | kViewWritable | kViewDevice;
  char path[1 + kNameBytes] = "/";
  std::memcpy(path + 1, name, std::strlen(name) + 1);
  return Add(view, ViewOp::kBind, kAsItIs, name, path);
}

Failure AddEntry(OwnView* view, int root, const char* name) {
  if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0) return kSuccess;
  if (std::strlen(name) >= kNameBytes) return {Step::kAttachHostMounts, ENAMETOOLONG};
  struct stat status{};
  const long known = Call(SYS_newfstatat, root, name, &status, AT_SYMLINK_NOFOLLOW);
  if (known < 0) return FailureIf(known, Step::kAttachHostMounts);
  return S_ISLNK(status.st_mode) ? AddLink(view, root, name) : AddSame(view, name);
}

Failure AddAll(OwnView* view, int root) {
  alignas(8) char entries[2048];
  for (;;) {
    const long filled = Call(SYS_getdents64, root, entries, sizeof entries);
    if (filled <= 0) return FailureIf(filled, Step::kAttachHostMounts);
    for (long at = 0; at < filled;) {
      const auto* const entry = reinterpret_cast<const DirectoryEntry*>(entries + at);
      const Failure added = AddEntry(view, root, entry->name);
      if (added.failed()) return added;
      at += entry->record_length;
    }
  }
}

Failure AddTrees(OwnView* view, const SetupPlan& plan) {
  const std::uint32_t count = plan.config->host_mounts;
  int trees[kMaxHostMounts];
  for (std::uint32_t i = 0; i < count; ++i) trees[i] = kHostTreesFd + static_cast<int>(i);
  const Failure added = view->Add({.bytes = plan.host_mounts,
                                   .size = plan.config->host_mount_bytes,
                                   .count = count,
                                   .trees = trees,
                                   .tree_count = static_cast<int>(count)});
  if (!added.failed()) return kSuccess;
  return {Step::kAttachHostMounts, added.sys_errno, added.detail};
}

}  // namespace

Failure AttachHostMounts(const SetupPlan& plan) {
  if (plan.config->host_mounts == 0) return kSuccess;
  // Of the root that is there: what Begin mounts on it is not seen from where we stand.
  const long root = OpenAt(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY);
  if (root < 0) return FailureIf(root, Step::kAttachHostMounts);
  OwnView view;
  Failure failure = view.Begin();
  if (!failure.failed()) failure = AddAll(&view, static_cast<int>(root));
  Close(static_cast<int>(root));
  if (!failure.failed()) failure = AddTrees(&view, plan);
  if (!failure.failed()) failure = view.Finish();
  return failure.failed() ? failure : EnterWorkspace(plan);
}

}  // namespace palmshed::child
