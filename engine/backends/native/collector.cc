#include "backends/native/collector.h"

#include <fcntl.h>

#include <cerrno>
#include <expected>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "backends/native/state.h"
#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "kernel/cgroup.h"
#include "palmshed/error.h"

namespace palmshed::backends::native {
namespace {

/// The sandboxes of which anything is left, by what of them was seen.
struct Found {
  std::set<std::string> locked;  ///< A lock file, with or without the rest.
  std::set<std::string> rest;    ///< A directory, whole or half deleted.
};

Result<Found> FindAll(BorrowedFd root) {
  PALMSHED_TRY(UniqueFd fd, sys::OpenAt(root, ".", O_RDONLY | O_DIRECTORY));
  PALMSHED_TRY(sys::Directory directory, sys::Directory::Read(std::move(fd)));
  Found found;
  while (true) {
    PALMSHED_TRY(const auto entry, directory.Next());
    if (!entry) return found;
    const auto name = ParseStateName(entry->name);
    if (!name) continue;
    (name->kind == StateName::Kind::kLock ? found.locked : found.rest).insert(name->id);
  }
}

/// Nobody makes a directory without holding its lock file, which goes last: no lock file, no owner.
bool HasNoLock(BorrowedFd root, const std::string& id) {
  auto st = sys::FstatAt(root, id + ".lock", AT_SYMLINK_NOFOLLOW);
  return !st && st.error().sys_errno == ENOENT;
}

void Note(Collection& collection, const std::string& id, Result<void> removed) {
  if (removed) {
    collection.removed.push_back(id);
  } else {
    collection.failures.push_back({.id = id, .why = std::move(removed.error())});
  }
}

/// Whoever was killed may have been looking for control groups (LockAlone).
void CollectLocked(BorrowedFd root, const std::string& id, Collection& collection) {
  auto lock = TakeDeadLock(root, id);
  if (!lock) {
    collection.failures.push_back({.id = id, .why = std::move(lock.error())});
    return;
  }
  if (!*lock) return;
  if (collection.removed.empty()) kernel::RemoveDeadProbes();
  // Who makes a lock file may find it taken before it is locked, and makes another.
  const bool home = HasHome(root, id);
  auto removed = RemoveHome(root, id);
  if (home || !removed) Note(collection, id, std::move(removed));
}

}  // namespace

Result<Collection> CollectDead(BorrowedFd root) {
  PALMSHED_TRY(const Found found, FindAll(root));
  Collection collection;
  for (const std::string& id : found.locked) CollectLocked(root, id, collection);
  for (const std::string& id : found.rest) {
    if (found.locked.contains(id) || !HasNoLock(root, id)) continue;
    if (!HasHome(root, id)) continue;  // Its owner has removed it since it was seen.
    Note(collection, id, RemoveHome(root, id));
  }
  return collection;
}

}  // namespace palmshed::backends::native
