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
  const char* rules = nullptr;
  std::size_t rules_bytes = 0;
};

/// Failure at kReadConfig when the message is not what it says it is.
Failure ParseInitConfig(const char* message, std::size_t bytes, SetupPlan* plan);

/// setup_mounts.cc: /proc, /tmp, /dev/shm, /dev/pts, /workspace.
Failure MountProc(const SetupPlan& plan);
Failure MountPrivateDirectories(const SetupPlan& plan);
Failure AttachWorkspace(const SetupPlan& plan);

/// setup_identity.cc: host name, loopback, keyring; then no privilege is left.
Failure SetUpNames(const SetupPlan& plan);
Failure JoinKeyring(const SetupPlan& plan);  ///< Alone, where there are no namespaces.
Failure DropPrivileges(const SetupPlan& plan);

/// setup_confinement.cc: Landlock, then seccomp, which could forbid the rest.
Failure ApplyLandlock(const SetupPlan& plan);
Failure LoadFilter(const SetupPlan& plan);

}  // namespace palmshed::child
