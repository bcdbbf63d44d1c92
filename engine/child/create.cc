#include "child/create.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "child/failure.h"
#include "child/init_birth.h"
#include "child/kernel_abi.h"
#include "child/raw.h"
#include "child/text.h"
#include "child/tree.h"
#include "child/view.h"
#include "child/wire.h"

namespace palmshed::child {
namespace {

struct Trees {
  int workspace = -1;
  int tmp = -1;
  int host[kMaxHostMounts];
  std::uint32_t host_count = 0;
};

void CloseTrees(const Trees& trees) {
  if (trees.workspace >= 0) Close(trees.workspace);
  if (trees.tmp >= 0) Close(trees.tmp);
  for (std::uint32_t i = 0; i < trees.host_count; ++i) Close(trees.host[i]);
}

Failure CopyTrees(const SandboxOrder& order, Trees* trees) {
  const long workspace = CopyTree(order.workspace, kViewWritable);
  if (workspace < 0) return FailureIf(workspace, Step::kOpenWorkspace);
  trees->workspace = static_cast<int>(workspace);
  const long tmp = CopyTree(order.tmp, kViewWritable);
  if (tmp < 0) return FailureIf(tmp, Step::kOpenTmp);
  trees->tmp = static_cast<int>(tmp);
  return kSuccess;
}

Failure DuplicateTrees(const SandboxOrder& order, Trees* trees) {
  const long workspace = Duplicate(order.workspace_tree);
  if (workspace < 0) return FailureIf(workspace, Step::kOpenWorkspace);
  trees->workspace = static_cast<int>(workspace);
  const long tmp = Duplicate(order.tmp_tree);
  if (tmp < 0) return FailureIf(tmp, Step::kOpenTmp);
  trees->tmp = static_cast<int>(tmp);
  return kSuccess;
}

bool IsSame(int a, int b) {
  struct stat one{};
  struct stat other{};
  const bool known = Call(SYS_fstat, a, &one) >= 0 && Call(SYS_fstat, b, &other) >= 0;
  return known && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

// The engine's descriptor belongs to its own mount namespace, in which nothing can be copied here.
// So the path is looked up again, and must lead to the same file.
long CopyHeld(const char* path, int held, std::uint32_t flags) {
  const OpenHow how{O_PATH | O_CLOEXEC, 0, kResolveNoSymlinks | kResolveNoMagicLinks};
  const long found = Call(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
  if (found < 0) return found;
  const bool same = IsSame(static_cast<int>(found), held);
  const long tree = same ? CopyTree(static_cast<int>(found), flags) : -EXDEV;
  Close(static_cast<int>(found));
  return tree;
}

Failure CopyHostMounts(const SandboxOrder& order, Trees* trees) {
  const char* next = order.host_mounts;
  for (std::uint32_t i = 0; i < order.host_mount_count; ++i) {
    const std::uint32_t writable = next[0] == kHostMountWritable ? kViewWritable : 0U;
    const long tree = CopyHeld(next + 1, order.held[i], kViewRecursive | writable);
    if (tree < 0) return FailureIf(tree, Step::kHostMount, i);
    trees->host[trees->host_count++] = static_cast<int>(tree);
    next += std::strlen(next) + 1;
  }
  return kSuccess;
}

Failure CopyFromHost(const SandboxOrder& order, Trees* trees) {
  const Failure own = order.workspace_tree >= 0 ? kSuccess : CopyTrees(order, trees);
  return own.failed() ? own : CopyHostMounts(order, trees);
}

// Only a tree of the namespace one stands in can be copied, so the launcher steps over and back. If
// it could not get back, the next create would try again before anything else.
Failure FetchTrees(const View& view, const SandboxOrder& order, Trees* trees) {
  if (order.workspace_tree >= 0) {
    const Failure duplicated = DuplicateTrees(order, trees);
    if (duplicated.failed() || order.host_mount_count == 0) return duplicated;
  }
  const long there = Call(SYS_setns, view.host_namespace, CLONE_NEWNS);
  if (there < 0) return FailureIf(there, Step::kEnterHostView);
  const Failure copied = CopyFromHost(order, trees);
  const long back = Call(SYS_setns, view.namespace_fd, CLONE_NEWNS);
  return copied.failed() ? copied : FailureIf(back, Step::kEnterView);
}

unsigned long NamespacesFor(const Surroundings& surroundings) {
  unsigned long namespaces = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
  if ((surroundings.flags & kLauncherNoUserNamespace) == 0) namespaces |= CLONE_NEWUSER;
  const bool own_network = (surroundings.flags & kLauncherHostNetwork) == 0;
  if (own_network && !surroundings.spare_network) namespaces |= CLONE_NEWNET;
  return namespaces;
}

// The number of a process in the pid namespace that `view.proc` shows: the launcher's own, or, by
// way of the pidfd, the host's.
std::uint32_t PidInProc(const View& view, const InitBirth& birth) {
  if (view.own_proc) return static_cast<std::uint32_t>(birth.pid);
  ShortText path;
  path.Append("self/fdinfo/").Append(static_cast<std::uint64_t>(birth.pidfd));
  const long file = OpenAt(view.proc, path.c_str(), O_RDONLY);
  if (file < 0) return 0;
  char text[1024] = {};
  (void)Call(SYS_read, file, text, sizeof text - 1);
  Close(static_cast<int>(file));
  const char* const line = std::strstr(text, "\nPid:\t");
  return line == nullptr ? 0 : ParseNumber(line + 6);
}

// The launcher of an ordinary user is uid 0 of its own namespace, which is that user outside.
Failure WriteMaps(const Surroundings& surroundings, std::uint32_t uid, const InitBirth& birth) {
  if ((surroundings.flags & kLauncherNoUserNamespace) != 0) return kSuccess;
  const std::uint32_t outside = (surroundings.flags & kLauncherRoot) != 0 ? uid : 0;
  const std::uint32_t pid = PidInProc(surroundings.view, birth);
  const int proc = surroundings.view.proc;
  if (const long result = WriteIdMap(proc, pid, "uid_map", outside); result < 0) {
    return FailureIf(result, Step::kSandboxUidMap);
  }
  return FailureIf(WriteIdMap(proc, pid, "gid_map", outside), Step::kSandboxGidMap);
}

Failure RaiseInit(Surroundings* surroundings, const SandboxOrder& order, InitBirth* birth,
                  CreatedSandbox* created) {
  const Failure cloned = CloneInit(birth, NamespacesFor(*surroundings));
  if ((surroundings->flags & kLauncherHostNetwork) == 0) surroundings->spare_network = false;
  if (cloned.failed()) return cloned;
  created->stamps[2] = NowNs();
  const Failure mapped = WriteMaps(*surroundings, order.uid, *birth);
  if (mapped.failed()) {
    AbandonInit(birth);
    return mapped;
  }
  created->stamps[3] = NowNs();
  ReleaseInit(birth);
  const Failure become = AwaitInit(birth);
  created->stamps[4] = NowNs();
  created->pid = birth->pid;
  created->pidfd = birth->pidfd;
  return become;
}

}  // namespace

Failure CreateSandbox(Surroundings* surroundings, const SandboxOrder& order,
                      CreatedSandbox* created) {
  created->stamps[0] = NowNs();
  Trees trees;
  const Failure fetched = FetchTrees(surroundings->view, order, &trees);
  if (fetched.failed()) {
    CloseTrees(trees);
    return fetched;
  }
  created->stamps[1] = NowNs();
  static InitBirth birth;  // One create at a time; a stack of its own is part of it.
  birth.plan = {
      .role = "sandbox",
      .option = nullptr,
      .maker = -1,
      .fds = {order.socket, trees.workspace, trees.tmp},
      .more = trees.host,
      .more_count = trees.host_count,
      .helper = surroundings->helper,
      .namespaces = 0,
      .late_identity = false,
      .drop_groups = (surroundings->flags & kLauncherRoot) != 0,
      .id = (surroundings->flags & kLauncherNoUserNamespace) != 0 ? order.uid : kInsideUid};
  const Failure raised = RaiseInit(surroundings, order, &birth, created);
  CloseTrees(trees);
  created->stamps[5] = NowNs();
  return raised;
}

}  // namespace palmshed::child
