// The files of one sandbox on the host, and who owns them.
//
//   <root>/<id>.lock        held with flock(2) for as long as the sandbox lives
//   <root>/<id>/workspace   the program's /workspace
//   <root>/<id>/tmp         the program's /tmp
//   <root>/<id>/disk.img    with `storage: loop`, what is in both instead
//   <root>/<id>/groups      where its control groups are, a directory a line; only if it has some
//   <root>/<id>.trash       what <id> is called while it is deleted
//
// The lock's descriptor lives in the sandbox's init: the lock is free exactly when init is dead,
// whatever became of the engine. So a free lock means a dead owner, and no process id is ever
// looked at. The lock is made, and taken, before the directory exists and deleted after it is gone:
// a directory without a lock file is nobody's. An id is never used twice.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/native/state_paths.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "workspace/resolve.h"

namespace palmshed::backends::native {

/// `sbx_` and 16 lower-case hex digits, as MakeId makes them.
bool IsSandboxId(std::string_view text);

/// What a name in the directory of workspaces stands for.
struct StateName {
  enum class Kind : unsigned char { kLock, kHome, kTrash };
  std::string id;
  Kind kind;
};

/// nullopt: the name is not one of ours.
std::optional<StateName> ParseStateName(std::string_view name);

/// Where a sandbox's directories are, or will be.
std::string WorkspacePath(const HostDirectory& root, const std::string& id);
std::string TmpPath(const HostDirectory& root, const std::string& id);

/// The directory of one sandbox. Going out of scope deletes nothing: that can wait and fail.
class SandboxHome {
 public:
  /// Makes it, with a lock that this process holds. `root` outlives the object. CONFLICT when the
  /// id is in use.
  static Result<SandboxHome> Create(const HostDirectory& root, std::string id,
                                    workspace::Owner owner);

  const std::string& id() const { return id_; }
  std::string workspace_path() const { return WorkspacePath(*root_, id_); }
  std::string tmp_path() const { return TmpPath(*root_, id_); }
  std::string image_path() const { return root_->path + "/" + id_ + "/disk.img"; }
  /// The lock, to be sent to the sandbox's init and closed here; this process stops holding it.
  UniqueFd TakeLock();
  /// Writes down the directories of control groups that are about to be made, each called by the
  /// sandbox's id: whoever deletes the files of a dead sandbox removes them too. May be done again
  /// when they could not be made.
  Result<void> RecordGroups(const std::vector<std::string>& directories) const;

  /// Deletes everything. Precondition: nothing of the sandbox runs any more. Idempotent, and safe
  /// while a collector does the same.
  Result<void> Remove();

 private:
  SandboxHome(const HostDirectory& root, std::string id, UniqueFd lock);
  Result<void> MakeDirectories(workspace::Owner owner) const;

  const HostDirectory* root_;
  std::string id_;
  UniqueFd lock_;
};

/// A lock like that of a sandbox, without one: held while something is made that would stay if this
/// process were killed. A collector that finds it free looks for that.
class LockAlone {
 public:
  /// `root` outlives the object.
  static Result<LockAlone> Take(BorrowedFd root);
  ~LockAlone();
  LockAlone(LockAlone&&) = default;
  LockAlone& operator=(LockAlone&&) = delete;

 private:
  LockAlone(BorrowedFd root, std::string id, UniqueFd lock);

  BorrowedFd root_;
  std::string id_;
  UniqueFd lock_;
};

/// Whether anything of a sandbox is there beside its lock file.
bool HasHome(BorrowedFd root, const std::string& id);
/// Deletes the files of a sandbox that is dead, and the control groups it left. Its name is gone at
/// once, its lock goes last.
Result<void> RemoveHome(BorrowedFd root, const std::string& id);
/// Takes the lock of a sandbox if its owner is dead; nullopt when it lives, or is gone.
Result<std::optional<UniqueFd>> TakeDeadLock(BorrowedFd root, const std::string& id);

}  // namespace palmshed::backends::native
