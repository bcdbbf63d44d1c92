// The steps by which init makes its sandbox from inside, in the order in which they are taken.
#pragma once

#include <cstddef>

#include "child/failure.h"
#include "child/kernel_abi.h"
#include "child/wire.h"

namespace palmshed::child {

/// The engine's InitConfig, taken apart. Points into the message.
struct SetupPlan {
  const InitConfig* config = nullptr;
  const FilterInstruction* filter = nullptr;
  const char* host_mounts = nullptr;  ///< The records.
  const char* rules = nullptr;
  std::size_t rules_bytes = 0;
};

/// Failure at kReadConfig when the message is not what it says it is.
Failure ParseInitConfig(const char* message, std::size_t bytes, SetupPlan* plan);

/// setup_mounts.cc: /proc, /tmp, /dev/shm, /dev/pts, /workspace.
Failure MountProc(const SetupPlan& plan);
Failure AttachTmp(const SetupPlan& plan);
Failure MountPrivateDirectories(const SetupPlan& plan);
Failure AttachWorkspace(const SetupPlan& plan);
Failure MountStorage(const SetupPlan& plan);  ///< After /tmp and /workspace, which it covers.
Failure HideKeys(
    const SetupPlan& plan);  ///< MountProc does; a direct sandbox's view has its /proc.
Failure EnterWorkspace(const SetupPlan& plan);  ///< AttachWorkspace does.

/// host_mounts.cc: shows the host's trees that came along in a root made anew, since nothing can be
/// added to the one that all sandboxes of the launcher share. After everything that is mounted.
Failure AttachHostMounts(const SetupPlan& plan);

/// own_names.cc: the sandbox's own uid in /etc/passwd and /etc/group, where it has one. After
/// MountPrivateDirectories.
Failure ShowOwnNames(const SetupPlan& plan);

/// setup_identity.cc: host name, loopback, keyring; then no privilege is left.
Failure SetUpNames(const SetupPlan& plan);
Failure JoinKeyring(const SetupPlan& plan);
Failure DropBoundingSet(const SetupPlan& plan);
Failure DropPrivileges(const SetupPlan& plan);
/// For a direct sandbox, without a plan: the first and the third. A keyring must be had: there is
/// no launcher's to fall back on.
Failure SetUpAlone(bool own_network);

/// setup_confinement.cc: Landlock, then seccomp, which could forbid the rest.
Failure ApplyLandlock(const SetupPlan& plan);
Failure LoadFilter(const SetupPlan& plan);

}  // namespace palmshed::child
