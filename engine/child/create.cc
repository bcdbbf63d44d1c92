#include "child/create.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "child/failure.h"
#include "child/init_birth.h"
#include "child/raw.h"
#include "child/text.h"
#include "child/view.h"
#include "child/wire.h"

namespace palmshed::child {
namespace {

struct Trees {
  int workspace = -1;
  int tmp = -1;
};

void CloseTrees(const Trees& trees) {
  if (trees.workspace >= 0) Close(trees.workspace);
  if (trees.tmp >= 0) Close(trees.tmp);
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

// Only a tree of the namespace one stands in can be copied, so the launcher steps over and back. If
// it could not get back, the next create would try again before anything else.
Failure FetchTrees(const View& view, const SandboxOrder& order, Trees* trees) {
  const long there = Call(SYS_setns, view.host_namespace, CLONE_NEWNS);
  if (there < 0) return FailureIf(there, Step::kEnterHostView);
  const Failure copied = CopyTrees(order, trees);
  const long back = Call(SYS_setns, view.namespace_fd, CLONE_NEWNS);
  return copied.failed() ? copied : FailureIf(back, Step::kEnterView);
}

unsigned long CloneFlags(const Surroundings& surroundings) {
  unsigned long flags = CLONE_VM | CLONE_CHILD_CLEARTID | CLONE_PIDFD | CLONE_NEWPID | CLONE_NEWNS |
                        CLONE_NEWIPC | CLONE_NEWUTS | SIGCHLD;
  if ((surroundings.flags & kLauncherNoUserNamespace) == 0) flags |= CLONE_NEWUSER;
  const bool own_network = (surroundings.flags & kLauncherHostNetwork) == 0;
  if (own_network && !surroundings.spare_network) flags |= CLONE_NEWNET;
  return flags;
}

// The number of a process in the pid namespace that `view.proc` shows: the launcher's own, or, by
// way of the pidfd, the host's.
std::uint32_t PidInProc(const View& view, const CreatedSandbox& created) {
  if (view.own_proc) return static_cast<std::uint32_t>(created.pid);
  ShortText path;
  path.Append("self/fdinfo/").Append(static_cast<std::uint64_t>(created.pidfd));
  const long file = OpenAt(view.proc, path.c_str(), O_RDONLY);
  if (file < 0) return 0;
  char text[1024] = {};
  (void)Call(SYS_read, file, text, sizeof text - 1);
  Close(static_cast<int>(file));
  const char* const line = std::strstr(text, "\nPid:\t");
  return line == nullptr ? 0 : ParseNumber(line + 6);
}

long WriteMap(int proc, std::uint32_t pid, std::string_view name, std::uint32_t outside) {
  ShortText path;
  path.Append(std::uint64_t{pid}).Append("/").Append(name);
  const long file = OpenAt(proc, path.c_str(), O_WRONLY);
  if (file < 0) return file;
  ShortText map;
  map.Append(std::uint64_t{kInsideUid}).Append(" ").Append(std::uint64_t{outside}).Append(" 1\n");
  const long written = Call(SYS_write, file, map.c_str(), map.size());
  Close(static_cast<int>(file));
  return written;
}

// The launcher of an ordinary user is uid 0 of its own namespace, which is that user outside.
Failure WriteMaps(const Surroundings& surroundings, std::uint32_t uid,
                  const CreatedSandbox& created) {
  if ((surroundings.flags & kLauncherNoUserNamespace) != 0) return kSuccess;
  const std::uint32_t outside = (surroundings.flags & kLauncherRoot) != 0 ? uid : 0;
  const std::uint32_t pid = PidInProc(surroundings.view, created);
  const int proc = surroundings.view.proc;
  if (const long result = WriteMap(proc, pid, "uid_map", outside); result < 0) {
    return FailureIf(result, Step::kSandboxUidMap);
  }
  return FailureIf(WriteMap(proc, pid, "gid_map", outside), Step::kSandboxGidMap);
}

void KillAndReap(CreatedSandbox* created) {
  (void)Call(SYS_pidfd_send_signal, created->pidfd, SIGKILL, nullptr, 0);
  while (Call(SYS_wait4, created->pid, nullptr, __WALL, nullptr) == -EINTR) {
  }
  Close(created->pidfd);
  created->pid = -1;
  created->pidfd = -1;
}

// The child runs in the launcher's memory until its exec, at which the kernel clears `alive`.
Failure CloneInit(Surroundings* surroundings, InitBirth* birth, CreatedSandbox* created) {
  const unsigned long flags = CloneFlags(*surroundings);
  const long pid = PalmshedCloneOnStack(flags, birth->stack + sizeof birth->stack, &created->pidfd,
                                        birth->alive.address(), BecomeInitInChild, birth);
  if ((surroundings->flags & kLauncherHostNetwork) == 0) surroundings->spare_network = false;
  if (pid < 0) {
    created->pidfd = -1;  // The kernel may have written a number that it then took back.
    return FailureIf(pid, Step::kCloneSandbox);
  }
  created->pid = static_cast<int>(pid);
  created->stamps[2] = NowNs();
  return kSuccess;
}

Failure RaiseInit(Surroundings* surroundings, const SandboxOrder& order, InitBirth* birth,
                  CreatedSandbox* created) {
  const Failure cloned = CloneInit(surroundings, birth, created);
  if (cloned.failed()) return cloned;
  const Failure mapped = WriteMaps(*surroundings, order.uid, *created);
  if (mapped.failed()) {
    KillAndReap(created);
    return mapped;
  }
  created->stamps[3] = NowNs();
  birth->mapped.Store(1);
  FutexWake(birth->mapped, 1);
  while (birth->alive.Load() != 0) FutexWait(birth->alive, 1);
  created->stamps[4] = NowNs();
  if (!birth->failure.failed()) return kSuccess;
  KillAndReap(created);
  return birth->failure;
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
  birth.mapped.Store(0);
  birth.alive.Store(1);
  birth.failure = kSuccess;
  birth.plan = {
      .socket = order.socket,
      .workspace_tree = trees.workspace,
      .tmp_tree = trees.tmp,
      .helper = surroundings->helper,
      .drop_groups = (surroundings->flags & kLauncherRoot) != 0,
      .id = (surroundings->flags & kLauncherNoUserNamespace) != 0 ? order.uid : kInsideUid};
  const Failure raised = RaiseInit(surroundings, order, &birth, created);
  CloseTrees(trees);
  created->stamps[5] = NowNs();
  return raised;
}

}  // namespace palmshed::child
