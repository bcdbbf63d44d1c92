#include "backends/native/host_limits.h"

#include <unistd.h>

#include <expected>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/native/enforcer.h"
#include "backends/native/group_enforcer.h"
#include "backends/native/limited_sandbox.h"
#include "backends/native/sampled_enforcer.h"
#include "backends/native/state.h"
#include "base/faults.h"
#include "base/processors.h"
#include "base/unique_fd.h"
#include "child/wire.h"
#include "kernel/cgroup.h"
#include "kernel/task_clock.h"
#include "palmshed/error.h"
#include "plan/plan.h"

namespace palmshed::backends::native {
namespace {

using plan::Enforcement;

constexpr char kSampling[] = "sampling of /proc";
constexpr char kProcessLimit[] = "RLIMIT_NPROC";

plan::Offer::Limit By(const std::string& mechanism, Enforcement enforcement) {
  return {.enforcement = enforcement, .mechanism = mechanism};
}

bool HasTaskClock() { return kernel::TaskClock::Open(::gettid()).has_value(); }

Result<std::unique_ptr<SampledSource>> MakeSampled(const LimitedSandbox& sandbox,
                                                   LimitedKind kind) {
  SampledSandbox sampled{.init = sandbox.init,
                         .own_processes = kind.namespaces,
                         .own_proc = kind.proc,
                         .own_users = kind.namespaces};
  if (kind.namespaces && kind.proc) {
    sampled.open_sysv = [open = sandbox.open_inside] { return open(child::Inside::kSysvSegments); };
  }
  return SampledSource::Create(std::move(sampled));
}

}  // namespace

void HostLimits::FindGroups() {
  if (Faulty("no-cgroups")) {
    groups_.missing = {.reason = "control groups are switched off", .remedy = ""};
    return;
  }
  auto tree = kernel::FindCgroupTree(groups_.missing);
  if (tree) groups_.tree = *std::move(tree);
}

kernel::CgroupControllers HostLimits::Controllers() const {
  return groups_.tree ? groups_.tree->controllers() : kernel::CgroupControllers{};
}

void HostLimits::Offer(plan::Offer& offer, LimitedKind kind, BorrowedFd root) {
  std::call_once(found_, [&] {
    // Groups are made on the way. There is no sandbox yet whose lock would tell of our death.
    const auto lock = LockAlone::Take(root);
    FindGroups();
  });
  const auto has = Controllers();
  const std::string groups = groups_.tree ? groups_.tree->name() : "";
  const plan::Offer::Limit none{
      .missing = {.reason = groups_.missing.reason, .remedy = groups_.missing.remedy}};
  const auto by_groups = By(groups, Enforcement::kKernel);
  offer.memory = has.memory ? by_groups : By(kSampling, Enforcement::kSampled);
  offer.cpu_quota = has.cpu_quota ? by_groups : none;
  offer.pids_of_sandbox = !has.pids;
  if (has.pids) {
    offer.pids = by_groups;
  } else {
    offer.pids = kind.namespaces ? By(kProcessLimit, Enforcement::kKernel) : none;
  }
  if (has.cpu_time) {
    offer.cpu_time = by_groups;
  } else {
    // The child that waits shares the memory of an init that nobody may inspect but the owner of
    // its user namespace.
    offer.cpu_time = kind.namespaces && HasTaskClock() ? By("perf task clock", Enforcement::kKernel)
                                                       : By(kSampling, Enforcement::kSampled);
  }
}

std::vector<std::shared_ptr<EnforcerSource>> HostLimits::SourcesFor(const LimitedSandbox& sandbox,
                                                                    LimitedKind kind) {
  std::vector<std::shared_ptr<EnforcerSource>> sources;
  std::call_once(found_, [this] { FindGroups(); });  // The sandbox's lock tells of our death.
  const auto has = Controllers();
  if (has.any()) {
    sources.push_back(MakeGroupSource({.tree = groups_.tree.get(),
                                       .name = sandbox.home->id(),
                                       .processors = OnlineProcessors(),
                                       .bearers = kind.bears(),
                                       .record = [home = sandbox.home](const auto& directories) {
                                         return home->RecordGroups(directories);
                                       }}));
  }
  if (has.memory && has.pids && has.cpu_time) return sources;
  auto sampled = MakeSampled(sandbox, kind);
  if (sampled) sources.push_back(*std::move(sampled));
  return sources;
}

}  // namespace palmshed::backends::native
