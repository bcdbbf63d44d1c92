#include <sys/mount.h>

#include <cerrno>
#include <cstdint>

#include "child/failure.h"
#include "child/raw.h"
#include "child/setup.h"
#include "child/text.h"
#include "child/tree.h"
#include "child/wire.h"

namespace palmshed::child {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kSpareInodes = 1024;

// Inodes are kernel memory: without a bound of their own, empty files would pass every limit.
Failure MountShm(const SetupPlan& plan) {
  const std::uint64_t bytes = plan.config->shm_bytes;
  ShortText options;
  options.Append("mode=1777,size=").Append(bytes);
  options.Append(",nr_inodes=").Append(bytes / kPage + kSpareInodes);
  return FailureIf(Mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()),
                   Step::kMountShm);
}

Failure Attach(int tree, const char* target, Step step) {
  const long attached = AttachTree(tree, AT_FDCWD, target);
  Close(tree);
  return FailureIf(attached, step);
}

// A part of what is mounted on /tmp, shown in the place that programs know.
Failure ShowStorage(const char* part, unsigned mode, const char* target) {
  long result = Call(SYS_mkdirat, AT_FDCWD, part, 0700);
  // The helper's umask would take some of it away.
  if (result >= 0) result = Call(SYS_fchmodat, AT_FDCWD, part, mode);
  const long tree = result < 0 ? result : CopyTree(part, kViewWritable);
  if (tree < 0) return FailureIf(tree, Step::kMountStorage);
  return Attach(static_cast<int>(tree), target, Step::kMountStorage);
}

}  // namespace

// The kernel lists the names of a user's keys to every process of that user, whichever its
// namespaces, and an ordinary user's sandboxes are processes of that user. What covers the lists is
// a device that cannot be opened there, so reading them fails.
Failure HideKeys(const SetupPlan&) {
  for (const char* const list : {"/proc/keys", "/proc/key-users"}) {
    const long cover = CopyTree("/dev/null", 0);
    if (cover < 0) return FailureIf(cover, Step::kMountProc);
    const Failure hidden = Attach(static_cast<int>(cover), list, Step::kMountProc);
    // A kernel without keys has no such file.
    if (hidden.failed() && hidden.sys_errno != ENOENT) return hidden;
  }
  return kSuccess;
}

// Without a /proc of its own the sandbox gets an empty one: what the view shows there would be the
// launcher's processes.
Failure MountProc(const SetupPlan& plan) {
  if ((plan.config->flags & kInitNoProc) != 0) {
    return FailureIf(Mount("tmpfs", "/proc", "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
                           "mode=0555,size=4k,nr_inodes=2"),
                     Step::kMountProc);
  }
  const long mounted = Mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr);
  return mounted < 0 ? FailureIf(mounted, Step::kMountProc) : HideKeys(plan);
}

Failure AttachTmp(const SetupPlan&) { return Attach(kTmpTreeFd, "/tmp", Step::kAttachTmp); }

Failure MountPrivateDirectories(const SetupPlan& plan) {
  const Failure shm = MountShm(plan);
  if (shm.failed()) return shm;
  return FailureIf(Mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
                         "newinstance,ptmxmode=0666,mode=0620"),
                   Step::kMountPts);
}

Failure AttachWorkspace(const SetupPlan& plan) {
  const Failure attached = Attach(kWorkspaceTreeFd, "/workspace", Step::kAttachWorkspace);
  return attached.failed() ? attached : EnterWorkspace(plan);
}

// One file system for both. What it covers is the sandbox's own directories on the host, which stay
// empty; its root is covered in turn by its own /tmp.
Failure MountStorage(const SetupPlan& plan) {
  if (plan.config->storage_bytes == 0) return kSuccess;
  ShortText options;
  options.Append("mode=0700,size=").Append(plan.config->storage_bytes);
  options.Append(",nr_inodes=").Append(plan.config->storage_inodes);
  const long mounted = Mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, options.c_str());
  if (mounted < 0) return FailureIf(mounted, Step::kMountStorage);
  const Failure shown = ShowStorage("/tmp/workspace", 0700, "/workspace");
  if (shown.failed()) return shown;
  const Failure tmp = ShowStorage("/tmp/tmp", 01777, "/tmp");
  return tmp.failed() ? tmp : EnterWorkspace(plan);
}

Failure EnterWorkspace(const SetupPlan&) {
  return FailureIf(Call(SYS_chdir, "/workspace"), Step::kAttachWorkspace);
}

}  // namespace palmshed::child
