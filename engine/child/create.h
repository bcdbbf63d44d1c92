// Making one sandbox: fetch its directories from the host's tree, clone its init into new
// namespaces, give it its identity, let it become `palmshed-init sandbox`.
#pragma once

#include <cstdint>

#include "child/failure.h"
#include "child/view.h"

namespace palmshed::child {

/// What the launcher has at hand for every sandbox.
struct Surroundings {
  std::uint32_t flags = 0;  ///< kLauncher...
  View view{};
  int helper = -1;             ///< The helper program.
  bool spare_network = false;  ///< The launcher stands in a network namespace nobody has used.
};

struct SandboxOrder {
  int socket;             ///< Becomes init's socket; stays the caller's.
  std::uint32_t uid;      ///< On the host; used with kLauncherRoot.
  const char* workspace;  ///< Directories on the host.
  const char* tmp;
  int workspace_tree = -1;  ///< Detached mounts instead of those; stay the caller's.
  int tmp_tree = -1;
  const char* host_mounts = nullptr;  ///< As of CreateRequest, `host_mount_count` strings.
  const int* held = nullptr;          ///< What each must be; stay the caller's.
  std::uint32_t host_mount_count = 0;
};

struct CreatedSandbox {
  int pid = -1;
  int pidfd = -1;
  std::uint64_t stamps[6] = {};
};

/// On failure nothing of the sandbox is left. A spare network namespace counts as used either way.
Failure CreateSandbox(Surroundings* surroundings, const SandboxOrder& order,
                      CreatedSandbox* created);

}  // namespace palmshed::child
