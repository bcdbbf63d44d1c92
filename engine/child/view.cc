#include "child/view.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "child/failure.h"
#include "child/kernel_abi.h"
#include "child/raw.h"
#include "child/tree.h"
#include "child/view_path.h"
#include "child/wire.h"

namespace palmshed::child {
namespace {

constexpr char kRootOptionsSize[] = "16m";

// The records, checked before anything is made of them.
struct Record {
  ViewEntry entry;
  const char* a;
  const char* b;
};

class RecordReader {
 public:
  RecordReader(const void* records, std::size_t bytes)
      : next_(static_cast<const char*>(records)), left_(bytes) {}

  bool Next(Record* record) {
    if (left_ < sizeof(ViewEntry)) return false;
    record->entry = *reinterpret_cast<const ViewEntry*>(next_);
    const std::size_t strings =
        std::size_t{record->entry.bytes_a} + 1 + std::size_t{record->entry.bytes_b} + 1;
    const std::size_t whole = (sizeof(ViewEntry) + strings + 7) / 8 * 8;
    if (whole > left_) return false;
    record->a = next_ + sizeof(ViewEntry);
    record->b = record->a + record->entry.bytes_a + 1;
    if (record->b[-1] != '\0' || record->b[record->entry.bytes_b] != '\0') return false;
    next_ += whole;
    left_ -= whole;
    return true;
  }

 private:
  const char* next_;
  std::size_t left_;
};

// ---- the root

long MakeRootMount() {
  const long context = Call(SYS_fsopen, "tmpfs", kFsOpenCloexec);
  if (context < 0) return context;
  long result = Call(SYS_fsconfig, context, kFsConfigSetString, "mode", "0755", 0);
  if (result >= 0) {
    result = Call(SYS_fsconfig, context, kFsConfigSetString, "size", kRootOptionsSize, 0);
  }
  if (result >= 0) result = Call(SYS_fsconfig, context, kFsConfigCreate, nullptr, nullptr, 0);
  if (result >= 0) {
    result = Call(SYS_fsmount, context, kFsMountCloexec, kMountAttrNoSuid | kMountAttrNoDev);
  }
  Close(static_cast<int>(context));
  return result;
}

// ---- the entries. Each returns 0 or a negative errno.

// What the helper's umask, 022, would take away.
bool IsMasked(std::uint32_t mode) { return (mode & 0022U) != 0; }

long AddDirectory(BuildRoot* root, const Record& record) {
  PlaceInView& place = root->place;
  if (const long result = place.Open(root->fd, record.a); result < 0) return result;
  const long made = Call(SYS_mkdirat, place.parent(), place.leaf(), record.entry.mode);
  if (made == -EEXIST) return 0;  // Made on the way to an earlier entry, or part of a bind.
  if (made < 0 || !IsMasked(record.entry.mode)) return made;
  return Call(SYS_fchmodat, place.parent(), place.leaf(), record.entry.mode);
}

long WriteAll(int file, const char* bytes, std::size_t size) {
  while (size > 0) {
    const long written = Call(SYS_write, file, bytes, size);
    if (written < 0) return written;
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
  return 0;
}

long AddFile(BuildRoot* root, const Record& record) {
  PlaceInView& place = root->place;
  if (const long result = place.Open(root->fd, record.a); result < 0) return result;
  const long file =
      OpenAt(place.parent(), place.leaf(), O_WRONLY | O_CREAT | O_EXCL, record.entry.mode);
  if (file < 0) return file;
  long result = WriteAll(static_cast<int>(file), record.b, record.entry.bytes_b);
  if (result >= 0 && IsMasked(record.entry.mode)) {
    result = Call(SYS_fchmod, file, record.entry.mode);
  }
  Close(static_cast<int>(file));
  return result;
}

long AddSymlink(BuildRoot* root, const Record& record) {
  PlaceInView& place = root->place;
  if (const long result = place.Open(root->fd, record.a); result < 0) return result;
  return Call(SYS_symlinkat, record.b, place.parent(), place.leaf());
}

// In the place that has been opened.
long MakeMountPoint(const PlaceInView& place, bool directory) {
  if (directory) return Call(SYS_mkdirat, place.parent(), place.leaf(), 0755);
  return Call(SYS_mknodat, place.parent(), place.leaf(), S_IFREG | 0644, 0);
}

// The tree takes the place of the root that was being built, rather than lie on top of it: what is
// left of the old root is found by looking for what is mounted last.
long ReplaceRoot(int tree, BuildRoot* root) {
  if (const long result = Call(SYS_fchdir, root->fd); result < 0) return result;
  if (const long result = Call(SYS_umount2, ".", MNT_DETACH); result < 0) return result;
  if (const long result = Call(SYS_chdir, "/"); result < 0) return result;
  if (const long result = AttachTree(tree, AT_FDCWD, "/"); result < 0) return result;
  const long result = Call(SYS_dup3, tree, root->fd, O_CLOEXEC);
  root->own = false;
  root->place.Forget();
  return result;
}

// What has just been made is no link, so it need not be looked up.
long AttachInView(int tree, BuildRoot* root, const char* path, bool directory) {
  if (IsRoot(path)) return ReplaceRoot(tree, root);
  const long placed = root->place.Open(root->fd, path);
  const long made = placed < 0 ? placed : MakeMountPoint(root->place, directory);
  if (made >= 0) {
    return AttachTree(tree, root->place.parent(), root->place.leaf());
  }
  const long target = OpenInView(root->fd, path);
  if (target < 0) return made != -EEXIST ? made : target;
  const long attached = AttachTree(tree, static_cast<int>(target), "");
  Close(static_cast<int>(target));
  root->place.Forget();
  return attached;
}

bool IsMissing(long result) { return result == -ENOENT || result == -ENOTDIR; }

long SourceOf(const ViewRecords& source, const Record& record) {
  if ((record.entry.flags & kViewTree) == 0) return CopyTree(record.b, record.entry.flags);
  if (record.entry.tree >= static_cast<std::uint32_t>(source.tree_count)) return -EBADMSG;
  return source.trees[record.entry.tree];
}

long AddBind(BuildRoot* root, const ViewRecords& source, const Record& record) {
  const long tree = SourceOf(source, record);
  if (IsMissing(tree) && (record.entry.flags & kViewOptional) != 0) return 0;
  if (tree < 0) return tree;
  const long directory = IsDirectory(static_cast<int>(tree));
  const long result = directory < 0
                          ? directory
                          : AttachInView(static_cast<int>(tree), root, record.a, directory == 1);
  Close(static_cast<int>(tree));
  return result;
}

long MakeProcMount() {
  const long context = Call(SYS_fsopen, "proc", kFsOpenCloexec);
  if (context < 0) return context;
  long result = Call(SYS_fsconfig, context, kFsConfigCreate, nullptr, nullptr, 0);
  if (result >= 0) {
    result = Call(SYS_fsmount, context, kFsMountCloexec,
                  kMountAttrNoSuid | kMountAttrNoDev | kMountAttrNoExec);
  }
  Close(static_cast<int>(context));
  return result;
}

// The mount itself serves as the directory from which the launcher reads.
long AddProc(BuildRoot* root, const Record& record, View* view) {
  const long tree = MakeProcMount();
  if (tree < 0) return tree;
  const long result = AttachInView(static_cast<int>(tree), root, record.a, true);
  if (result < 0) {
    Close(static_cast<int>(tree));
    return result;
  }
  if (view->proc >= 0) Close(view->proc);
  view->proc = static_cast<int>(tree);
  view->own_proc = true;
  return 0;
}

Failure AddEntry(BuildRoot* root, const ViewRecords& source, const Record& record,
                 std::uint32_t index, View* view) {
  switch (record.entry.op) {
    case ViewOp::kDirectory:
      return FailureIf(AddDirectory(root, record), Step::kViewEntry, index);
    case ViewOp::kFile:
      return FailureIf(AddFile(root, record), Step::kViewEntry, index);
    case ViewOp::kSymlink:
      return FailureIf(AddSymlink(root, record), Step::kViewEntry, index);
    case ViewOp::kBind:
      return FailureIf(AddBind(root, source, record), Step::kViewEntry, index);
    case ViewOp::kProc:
      return FailureIf(AddProc(root, record, view), Step::kViewProc, index);
  }
  return {Step::kViewEntry, EINVAL, index};
}

Failure AddEntries(BuildRoot* root, const ViewRecords& source, View* view) {
  RecordReader reader(source.bytes, source.size);
  for (std::uint32_t index = 0; index < source.count; ++index) {
    Record record;
    if (!reader.Next(&record)) return {Step::kViewEntry, EBADMSG, index};
    const Failure failure = AddEntry(root, source, record, index, view);
    if (failure.failed()) return failure;
  }
  return kSuccess;
}

// pivot_root(".", ".") stacks the old root on the new one, whence it is detached: no directory for
// it is needed, so the new root may be read-only (pivot_root(2), "pivot_root(".", ".")").
Failure EnterRoot(int root) {
  if (const long result = Call(SYS_fchdir, root); result < 0) {
    return FailureIf(result, Step::kPivotRoot);
  }
  if (const long result = Call(SYS_pivot_root, ".", "."); result < 0) {
    return FailureIf(result, Step::kPivotRoot);
  }
  if (const long result = Call(SYS_umount2, ".", MNT_DETACH); result < 0) {
    return FailureIf(result, Step::kPivotRoot);
  }
  return FailureIf(Call(SYS_chdir, "/"), Step::kPivotRoot);
}

// The new root is stacked on the old "/": a process keeps the root it has, so while the view is
// being built every host path can still be named, and none is hidden by the view.
Failure BeginRoot(BuildRoot* root) {
  const long made = MakeRootMount();
  if (made < 0) return FailureIf(made, Step::kViewRoot);
  root->fd = static_cast<int>(made);
  return FailureIf(AttachTree(root->fd, AT_FDCWD, "/"), Step::kViewRoot);
}

Failure FinishRoot(BuildRoot* root) {
  if (!root->own) return kSuccess;
  const MountAttributes read_only{kMountAttrReadOnly, 0, 0, 0};
  return FailureIf(
      Call(SYS_mount_setattr, root->fd, "", AT_EMPTY_PATH, &read_only, sizeof read_only),
      Step::kViewRoot);
}

Failure MakeRoot(const ViewRecords& source, View* view, BuildRoot* root) {
  const Failure begun = BeginRoot(root);
  if (begun.failed()) return begun;
  const Failure added = AddEntries(root, source, view);
  return added.failed() ? added : FinishRoot(root);
}

// Whoever enters a mount namespace gets what was mounted last on its "/": were anything of the host
// left there, every sandbox would see it. So that is looked at, not assumed.
Failure CheckRoot(int root) {
  StatxMount expected{};
  StatxMount found{};
  const long first = Call(SYS_statx, root, "", AT_EMPTY_PATH, kStatxMountId, &expected);
  if (first < 0) return FailureIf(first, Step::kPivotRoot);
  const long second = Call(SYS_statx, AT_FDCWD, "/", 0, kStatxMountId, &found);
  if (second < 0) return FailureIf(second, Step::kPivotRoot);
  if (expected.mount_id != found.mount_id || expected.mount_id == 0) {
    return {Step::kPivotRoot, EXDEV};
  }
  return kSuccess;
}

// A namespace made with a user namespace receives the host's later mounts and sends none back;
// without a user namespace that has to be said.
Failure SeparateFromHost(View* view) {
  const long slave = Mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr);
  if (slave < 0) return FailureIf(slave, Step::kPrivateMounts);
  const long proc = OpenAt(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY);
  if (proc < 0) return FailureIf(proc, Step::kPrivateMounts);
  view->proc = static_cast<int>(proc);
  const long host = OpenAt(view->proc, "self/ns/mnt", O_RDONLY);
  if (host < 0) return FailureIf(host, Step::kPrivateMounts);
  view->host_namespace = static_cast<int>(host);
  return FailureIf(Call(SYS_unshare, CLONE_NEWNS), Step::kUnshareMounts);
}

}  // namespace

Failure BuildView(const ViewRecords& source, View* view) {
  const Failure separated = SeparateFromHost(view);
  if (separated.failed()) return separated;
  // "self" must be looked up through the host's proc: the launcher's own may not be in the view.
  const long host_proc = Duplicate(view->proc);
  if (host_proc < 0) return FailureIf(host_proc, Step::kPivotRoot);
  BuildRoot root;
  const Failure made = MakeRoot(source, view, &root);
  if (made.failed()) return made;
  const Failure entered = EnterRoot(root.fd);
  if (entered.failed()) return entered;
  const long here = OpenAt(static_cast<int>(host_proc), "self/ns/mnt", O_RDONLY);
  Close(static_cast<int>(host_proc));
  if (here < 0) return FailureIf(here, Step::kPivotRoot);
  view->namespace_fd = static_cast<int>(here);
  if (const long result = Call(SYS_setns, here, CLONE_NEWNS); result < 0) {
    return FailureIf(result, Step::kPivotRoot);
  }
  const Failure checked = CheckRoot(root.fd);
  Close(root.fd);
  return checked;
}

Failure OwnView::Begin() { return BeginRoot(&root_); }

Failure OwnView::Add(const ViewRecords& source) {
  View view;
  const Failure added = AddEntries(&root_, source, &view);
  if (view.proc >= 0) Close(view.proc);
  return added;
}

Failure OwnView::Finish() {
  const Failure finished = FinishRoot(&root_);
  if (finished.failed()) return finished;
  const Failure entered = EnterRoot(root_.fd);
  if (entered.failed()) return entered;
  const Failure checked = CheckRoot(root_.fd);
  root_.place.Forget();
  Close(root_.fd);
  return checked;
}

}  // namespace palmshed::child
