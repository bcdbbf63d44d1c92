// A sandbox plan as the first message to its init (child/wire.h).
#pragma once

#include <linux/filter.h>

#include <array>
#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "backends/native/syscall_policy.h"
#include "backends/native/view.h"
#include "plan/plan.h"
#include "workspace/disk_usage.h"

namespace palmshed::backends::native {

/// Compiles each filter once: it is the same for every sandbox, and looking for the shortest
/// program takes longer than most steps of a create. Any thread.
class Filters {
 public:
  /// Valid as long as this object.
  std::span<const sock_filter> For(FilterChoice choice);

 private:
  std::mutex mu_;
  std::array<std::vector<sock_filter>, 2 * kFilterKinds> programs_;
};

/// What stands around a sandbox of this plan.
FilterChoice FilterFor(const plan::SandboxPlan& plan);

/// The InitConfig with its filter and rules. `landlock_abi` decides about signal scopes. `storage`:
/// the size of the file system that init makes for the sandbox's files; nothing: it makes none.
std::vector<std::byte> EncodeInit(const plan::SandboxPlan& plan, const View& view,
                                  std::span<const sock_filter> filter, int landlock_abi,
                                  bool direct = false, const workspace::DiskAmount& storage = {});

}  // namespace palmshed::backends::native
