#include "child/init_birth.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string_view>

#include "child/failure.h"
#include "child/kernel_abi.h"
#include "child/lifeline.h"
#include "child/raw.h"
#include "child/text.h"
#include "child/wire.h"

namespace palmshed::child {
namespace {

// Init mounts (SYS_ADMIN), brings lo up (NET_ADMIN) and empties its bounding set (SETPCAP).
constexpr unsigned kKept[] = {kCapSetpcap, kCapNetAdmin, kCapSysAdmin};
// Until it has its identity.
constexpr unsigned kLent[] = {kCapSetgid, kCapSetuid};

constexpr int kFirstFd = kSocketFd;
constexpr int kFixedFds = 3;

// Without KEEPCAPS the change from uid 0 to another would take the capabilities away, where the
// sandbox has no user namespace of its own (capabilities(7)).
Failure ChangeIds(bool drop_groups, std::uint32_t id) {
  if (const long result = Prctl(PR_SET_KEEPCAPS, 1); result < 0) {
    return FailureIf(result, Step::kSandboxIds);
  }
  if (drop_groups) {
    const long result = Call(SYS_setgroups, 0, nullptr);
    if (result < 0) return FailureIf(result, Step::kSetgroups);
  }
  if (const long result = Call(SYS_setresgid, id, id, id); result < 0) {
    return FailureIf(result, Step::kSandboxIds);
  }
  return FailureIf(Call(SYS_setresuid, id, id, id), Step::kSandboxIds);
}

// Ambient: the only capabilities that a program run by another uid than 0 has after its exec.
Failure KeepCapabilities(bool lent_too) {
  std::uint32_t mask = 0;
  for (const unsigned capability : kKept) mask |= 1U << capability;
  for (const unsigned capability : kLent) mask |= lent_too ? 1U << capability : 0U;
  const CapabilityHeader header{kCapabilityVersion3, 0};
  const CapabilityWord words[2] = {{mask, mask, mask}, {}};
  if (const long result = Call(SYS_capset, &header, words); result < 0) {
    return FailureIf(result, Step::kSandboxCapabilities);
  }
  for (unsigned capability = 0; capability < 32; ++capability) {
    if ((mask >> capability & 1U) == 0) continue;
    const long result = Prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability);
    if (result < 0) return FailureIf(result, Step::kSandboxCapabilities);
  }
  return kSuccess;
}

// Each source may be one of the targets, so all are moved out of the way first. Whatever else the
// maker has open stays behind: a host program's descriptors may lack close-on-exec.
Failure PlaceFds(const InitPlan& plan, int* helper) {
  if (const long result = Call(SYS_unshare, CLONE_FILES); result < 0) {
    return FailureIf(result, Step::kExecInit);
  }
  const int count = kFixedFds + static_cast<int>(plan.more_count);
  const int beyond = kFirstFd + count;
  const long parked = Duplicate(plan.helper, beyond);
  if (parked < 0) return FailureIf(parked, Step::kExecInit);
  *helper = static_cast<int>(parked);
  int sources[kFixedFds + kMaxHostMounts];
  for (int i = 0; i < count; ++i) {
    const int source = i < kFixedFds ? plan.fds[i] : plan.more[i - kFixedFds];
    const long fd = Duplicate(source, beyond);
    if (fd < 0) return FailureIf(fd, Step::kExecInit);
    sources[i] = static_cast<int>(fd);
  }
  for (int i = 0; i < count; ++i) {
    const long placed = Call(SYS_dup3, sources[i], kFirstFd + i, 0);
    if (placed < 0) return FailureIf(placed, Step::kExecInit);
  }
  return FailureIf(Call(SYS_close_range, beyond, ~0U, kCloseRangeCloexec), Step::kExecInit);
}

Failure BecomeInit(const InitPlan& plan) {
  const Failure identity =
      plan.late_identity ? KeepCapabilities(true) : TakeIdentity(plan.drop_groups, plan.id);
  if (identity.failed()) return identity;
  int helper = -1;
  const Failure placed = PlaceFds(plan, &helper);
  if (placed.failed()) return placed;
  const char* const arguments[] = {"palmshed-init", plan.role, plan.option, nullptr};
  const char* const environment[] = {nullptr};
  const long result = Call(SYS_execveat, helper, "", arguments, environment, AT_EMPTY_PATH);
  return FailureIf(result, Step::kExecInit);
}

void BecomeInitInChild(void* shared) {
  auto* const birth = static_cast<InitBirth*>(shared);
  (void)DieWithParent();  // Until the change of credentials; after the exec once more.
  if (birth->plan.maker >= 0 && HasEnded(birth->plan.maker)) ExitGroup(1);
  const unsigned long namespaces = birth->plan.namespaces;
  if (namespaces != 0) {
    birth->failure = FailureIf(Call(SYS_unshare, namespaces), Step::kCloneSandbox);
    if (birth->failure.failed()) ExitGroup(1);
  }
  while (birth->mapped.Load() == 0) FutexWait(birth->mapped, 0);
  birth->failure = BecomeInit(birth->plan);
  ExitGroup(1);
}

long WriteProcFile(int proc, std::uint32_t pid, std::string_view name, std::string_view text) {
  ShortText path;
  path.Append(std::uint64_t{pid}).Append("/").Append(name);
  const long file = OpenAt(proc, path.c_str(), O_WRONLY);
  if (file < 0) return file;
  const long written = Call(SYS_write, file, text.data(), text.size());
  Close(static_cast<int>(file));
  return written < 0 ? written : 0;
}

}  // namespace

Failure TakeIdentity(bool drop_groups, std::uint32_t id) {
  const Failure changed = ChangeIds(drop_groups, id);
  return changed.failed() ? changed : KeepCapabilities(false);
}

Failure CloneInit(InitBirth* birth, unsigned long namespaces) {
  constexpr unsigned long kFlags =
      CLONE_VM | CLONE_FILES | CLONE_CHILD_CLEARTID | CLONE_PIDFD | SIGCHLD;
  birth->mapped.Store(0);
  birth->alive.Store(1);
  birth->failure = kSuccess;
  const long pid =
      PalmshedCloneOnStack(kFlags | namespaces, birth->stack + sizeof birth->stack, &birth->pidfd,
                           birth->alive.address(), BecomeInitInChild, birth);
  birth->pid = static_cast<int>(pid);
  if (pid >= 0) return kSuccess;
  birth->pidfd = -1;  // The kernel may have written a number that it then took back.
  return FailureIf(pid, Step::kCloneSandbox);
}

void ReleaseInit(InitBirth* birth) {
  birth->mapped.Store(1);
  FutexWake(birth->mapped, 1);
}

Failure AwaitInit(InitBirth* birth) {
  while (birth->alive.Load() != 0) FutexWait(birth->alive, 1);
  if (!birth->failure.failed()) return kSuccess;
  AbandonInit(birth);
  return birth->failure;
}

void AbandonInit(InitBirth* birth) {
  (void)Call(SYS_pidfd_send_signal, birth->pidfd, SIGKILL, nullptr, 0);
  while (Call(SYS_waitid, kPPidfd, birth->pidfd, nullptr, WEXITED | __WALL, nullptr) == -EINTR) {
  }
  Close(birth->pidfd);
  birth->pid = -1;
  birth->pidfd = -1;
}

long WriteIdMap(int proc, std::uint32_t pid, const char* name, std::uint32_t outside) {
  ShortText map;
  map.Append(std::uint64_t{kInsideUid}).Append(" ").Append(std::uint64_t{outside}).Append(" 1\n");
  return WriteProcFile(proc, pid, name, {map.c_str(), map.size()});
}

long DenySetgroups(int proc, std::uint32_t pid) {
  return WriteProcFile(proc, pid, "setgroups", "deny");
}

}  // namespace palmshed::child
