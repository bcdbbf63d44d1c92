#include "child/init_birth.h"

#include <sys/prctl.h>

#include <cstdint>

#include "child/failure.h"
#include "child/kernel_abi.h"
#include "child/raw.h"
#include "child/wire.h"

namespace palmshed::child {
namespace {

// Init mounts (SYS_ADMIN), brings lo up (NET_ADMIN) and empties its bounding set (SETPCAP).
constexpr unsigned kKept[] = {kCapSetpcap, kCapNetAdmin, kCapSysAdmin};
constexpr std::uint32_t kKeptMask = 1U << kCapSetpcap | 1U << kCapNetAdmin | 1U << kCapSysAdmin;

// Without KEEPCAPS the change from uid 0 to another would take the capabilities away, where the
// sandbox has no user namespace of its own (capabilities(7)).
Failure TakeIdentity(const InitPlan& plan) {
  if (const long result = Prctl(PR_SET_KEEPCAPS, 1); result < 0) {
    return FailureIf(result, Step::kSandboxIds);
  }
  if (plan.drop_groups) {
    const long result = Call(SYS_setgroups, 0, nullptr);
    if (result < 0) return FailureIf(result, Step::kSetgroups);
  }
  if (const long result = Call(SYS_setresgid, plan.id, plan.id, plan.id); result < 0) {
    return FailureIf(result, Step::kSandboxIds);
  }
  return FailureIf(Call(SYS_setresuid, plan.id, plan.id, plan.id), Step::kSandboxIds);
}

// Ambient: the only capabilities that a program run by another uid than 0 has after its exec.
Failure KeepCapabilities() {
  const CapabilityHeader header{kCapabilityVersion3, 0};
  const CapabilityWord words[2] = {{kKeptMask, kKeptMask, kKeptMask}, {}};
  if (const long result = Call(SYS_capset, &header, words); result < 0) {
    return FailureIf(result, Step::kSandboxCapabilities);
  }
  for (const unsigned capability : kKept) {
    const long result = Prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability);
    if (result < 0) return FailureIf(result, Step::kSandboxCapabilities);
  }
  return kSuccess;
}

// The launcher's 3, 4 and 5 are always taken, so none of the sources can be one of the targets.
Failure ExecInit(const InitPlan& plan) {
  (void)Call(SYS_dup3, plan.socket, kSocketFd, 0);
  (void)Call(SYS_dup3, plan.workspace_tree, kWorkspaceTreeFd, 0);
  (void)Call(SYS_dup3, plan.tmp_tree, kTmpTreeFd, 0);
  const char* const arguments[] = {"palmshed-init", "sandbox", nullptr};
  const char* const environment[] = {nullptr};
  const long result = Call(SYS_execveat, plan.helper, "", arguments, environment, AT_EMPTY_PATH);
  return FailureIf(result, Step::kExecInit);
}

Failure BecomeInit(const InitPlan& plan) {
  const Failure identity = TakeIdentity(plan);
  if (identity.failed()) return identity;
  const Failure capabilities = KeepCapabilities();
  if (capabilities.failed()) return capabilities;
  return ExecInit(plan);
}

}  // namespace

void BecomeInitInChild(void* shared) {
  auto* const birth = static_cast<InitBirth*>(shared);
  while (birth->mapped.Load() == 0) FutexWait(birth->mapped, 0);
  birth->failure = BecomeInit(birth->plan);
  ExitGroup(1);
}

}  // namespace palmshed::child
