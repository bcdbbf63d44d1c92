// A word for each step, for error messages and for `stage` in a termination record.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>

#include "child/wire.h"

namespace palmshed::child {

struct NamedStep {
  Step step;
  std::string_view name;
};

/// In the order of the enumeration, so that a step is its own index.
inline constexpr NamedStep kStepNames[] = {
    {Step::kNone, "none"},
    {Step::kEngineGone, "engine_gone"},
    {Step::kCloneLauncher, "clone_launcher"},
    {Step::kUidMap, "uid_map"},
    {Step::kGidMap, "gid_map"},
    {Step::kSetgroups, "setgroups"},
    {Step::kExecLauncher, "exec_launcher"},
    {Step::kReadConfig, "read_config"},
    {Step::kPrivateMounts, "private_mounts"},
    {Step::kUnshareMounts, "unshare_mounts"},
    {Step::kViewRoot, "view_root"},
    {Step::kViewEntry, "view_entry"},
    {Step::kViewProc, "view_proc"},
    {Step::kPivotRoot, "pivot_root"},
    {Step::kSpareNetwork, "spare_network"},
    {Step::kEnterHostView, "enter_host_view"},
    {Step::kOpenWorkspace, "open_workspace"},
    {Step::kOpenTmp, "open_tmp"},
    {Step::kHostMount, "host_mount"},
    {Step::kEnterView, "enter_view"},
    {Step::kCloneSandbox, "clone_sandbox"},
    {Step::kSandboxUidMap, "sandbox_uid_map"},
    {Step::kSandboxGidMap, "sandbox_gid_map"},
    {Step::kSandboxIds, "sandbox_ids"},
    {Step::kSandboxCapabilities, "sandbox_capabilities"},
    {Step::kExecInit, "exec_init"},
    {Step::kOpenProc, "open_proc"},
    {Step::kMountProc, "mount_proc"},
    {Step::kMountShm, "mount_shm"},
    {Step::kMountStorage, "mount_storage"},
    {Step::kMountPts, "mount_pts"},
    {Step::kOwnNames, "own_names"},
    {Step::kAttachWorkspace, "attach_workspace"},
    {Step::kAttachTmp, "attach_tmp"},
    {Step::kAttachHostMounts, "attach_host_mounts"},
    {Step::kHostname, "hostname"},
    {Step::kLoopback, "loopback"},
    {Step::kKeyring, "keyring"},
    {Step::kDropBounding, "drop_bounding"},
    {Step::kDropCapabilities, "drop_capabilities"},
    {Step::kNoNewPrivs, "no_new_privs"},
    {Step::kLandlockCreate, "landlock_create"},
    {Step::kLandlockRule, "landlock_rule"},
    {Step::kLandlockRestrict, "landlock_restrict"},
    {Step::kSeccomp, "seccomp"},
    {Step::kOpenNull, "open_null"},
    {Step::kThread, "thread"},
    {Step::kSignalScope, "signal_scope"},
    {Step::kGuard, "guard"},
    {Step::kRequest, "request"},
    {Step::kClone, "clone"},
    {Step::kRlimit, "rlimit"},
    {Step::kChdir, "chdir"},
    {Step::kStdio, "stdio"},
    {Step::kTerminal, "terminal"},
    {Step::kExec, "exec"},
    {Step::kOpenInside, "open_inside"},
    {Step::kArm, "arm"},
};

constexpr bool StepNamesAreInOrder() {
  for (std::size_t i = 0; i < std::size(kStepNames); ++i) {
    if (kStepNames[i].step != static_cast<Step>(i)) return false;
  }
  return std::size(kStepNames) == static_cast<std::size_t>(Step::kArm) + 1;
}
static_assert(StepNamesAreInOrder());

constexpr std::string_view StepName(Step step) {
  const auto index = static_cast<std::size_t>(step);
  return index < std::size(kStepNames) ? kStepNames[index].name : "unknown";
}

}  // namespace palmshed::child
