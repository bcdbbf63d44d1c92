// What of the limits this host lets the engine enforce, found out when one is first asked for.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "backends/native/enforcer.h"
#include "backends/native/limited_sandbox.h"
#include "base/unique_fd.h"
#include "base/worker.h"
#include "kernel/cgroup.h"
#include "palmshed/error.h"
#include "plan/plan.h"

namespace palmshed::backends::native {

/// What makes a difference to the limits of a sandbox beyond itself.
struct LimitedKind {
  bool namespaces = true;  ///< It has a pid namespace and a user namespace.
  bool proc = true;        ///< It has a /proc of its own.
  bool scopes = true;      ///< Its executions have signal scopes of their own.

  /// Whether what bears a program can bear another (child/bearer.h).
  bool bears() const { return namespaces && proc && scopes; }
};

/// Of one engine. Any thread.
class HostLimits {
 public:
  /// Fills in the offer. `root` is the directory of workspaces.
  void Offer(plan::Offer& offer, LimitedKind kind, BorrowedFd root);
  /// What enforces the limits of one sandbox, the best first. A mechanism that cannot be had for it
  /// is left out, and executions that need it are refused.
  std::vector<std::shared_ptr<EnforcerSource>> SourcesFor(const LimitedSandbox& sandbox,
                                                          LimitedKind kind);
  /// For preparing executions.
  Worker& worker() { return worker_; }

 private:
  struct Groups {
    std::unique_ptr<kernel::CgroupTree> tree{};  ///< Null: there is none.
    kernel::NoCgroups missing{};
  };
  void FindGroups();
  kernel::CgroupControllers Controllers() const;

  std::once_flag found_;
  Groups groups_;
  Worker worker_;
};

}  // namespace palmshed::backends::native
