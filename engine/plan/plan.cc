#include "plan/plan.h"

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/validate.h"
#include "palmshed/error.h"
#include "palmshed/json.h"
#include "palmshed/options.h"
#include "palmshed/units.h"
#include "plan/environment.h"
#include "plan/limits.h"
#include "plan/program.h"

namespace palmshed::plan {
namespace {

Result<void> RefuseMissing(std::string_view control, const Offer::Missing& missing) {
  return std::unexpected(Unsupported(control, missing.reason, missing.remedy));
}

Result<void> PlanView(const SandboxOptions& options, const Offer& offer, SandboxPlan& plan) {
  const bool wanted = options.os_filesystem_isolation.value_or(true);
  plan.private_view = wanted && offer.private_view;
  plan.filtered_view = wanted && !offer.private_view && offer.filtered_view;
  plan.workspace = offer.workspace;
  if (!wanted || plan.private_view || plan.filtered_view) return {};
  return RefuseMissing("osFilesystemIsolation", offer.private_view_missing);
}

Result<void> PlanProc(const Offer& offer, SandboxPlan& plan, Concessions& concessions) {
  plan.proc = offer.fresh_proc && !plan.filtered_view;
  if (plan.proc || plan.filtered_view) return {};
  return concessions.Require("proc", "proc", offer.proc_missing.reason, offer.proc_missing.remedy);
}

Result<void> PlanNetwork(const SandboxOptions& options, const Offer& offer, SandboxPlan& plan,
                         Concessions& concessions) {
  plan.network = options.network;
  switch (options.network) {
    case Network::kDisabled:
      if (offer.network_disabled) return {};
      return RefuseMissing("network", offer.network_missing);
    case Network::kAllow:
      if (offer.host_loopback_guarded) return {};
      return concessions.Require(
          "hostLoopback", "network",
          "\"allow\" would let the sandbox reach abstract sockets of the host, which this kernel "
          "cannot scope (Landlock ABI 6, Linux 6.12)",
          "Use network \"disabled\", or name hostLoopback in degraded to accept that.");
    case Network::kProxy:
      return RefuseMissing("network", {.reason = R"(no backend of this version has "proxy")",
                                       .remedy = R"(Use network "disabled" or "allow".)"});
  }
  PALMSHED_UNREACHABLE();
}

Result<void> RefusePendingOptions(const SandboxOptions& options) {
  const Millis none{0};
  PALMSHED_TRY_VOID(RefusePending(!options.mounts.empty(), "mounts"));
  PALMSHED_TRY_VOID(RefusePending(!options.network_allow.empty(), "networkAllow"));
  PALMSHED_TRY_VOID(RefusePending(!options.proxy_url.empty(), "proxyUrl"));
  PALMSHED_TRY_VOID(RefusePending(options.idle_timeout.value_or(none) != none, "idleTimeout"));
  PALMSHED_TRY_VOID(RefusePending(options.max_lifetime.value_or(none) != none, "maxLifetime"));
  return RefusePending(options.storage != Storage::kDisk, "storage");
}

Result<void> PlanLimits(const SandboxOptions& options, const Offer& offer, SandboxPlan& plan,
                        Concessions& concessions) {
  const Bytes max_output = options.max_output.value_or(Bytes{});
  plan.timeout = options.timeout.value_or(Millis{0});
  plan.max_output = max_output == Bytes{} ? kDefaultMaxOutput : max_output;
  plan.cpu_time_limit = options.cpu_time_limit.value_or(Millis{0});
  plan.cpu_quota = options.cpu_quota.value_or(options.cpu.value_or(0));
  plan.memory = options.memory.value_or(Bytes{});
  plan.pids = options.pids.value_or(0);
  plan.usable_cpus = offer.usable_cpus;
  plan.degraded = options.degraded;
  return RequirePending(PendingLimits{.cpu_time_limit = plan.cpu_time_limit,
                                      .cpu_quota = plan.cpu_quota,
                                      .cpu_quota_field = options.cpu_quota ? "cpuQuota" : "cpu",
                                      .usable_cpus = plan.usable_cpus,
                                      .memory = plan.memory,
                                      .pids = plan.pids,
                                      .disk_quota = options.disk_quota.value_or(Bytes{})},
                        concessions);
}

// Without mounts it does no harm that an ordinary user's supplementary groups are kept; who said
// that they accept it is told all the same.
void NoteGroups(const Offer& offer, Concessions& concessions) {
  if (!offer.groups_dropped) (void)concessions.Concede("groups");  // Ignoring: nothing to refuse.
}

// The limits of one execution. Those that are not enforced matter only for what they refuse.
Result<void> PlanExecLimits(const ExecOptions& asked, const SandboxPlan& sandbox, ExecPlan& plan,
                            Concessions& concessions) {
  PendingLimits pending{.usable_cpus = sandbox.usable_cpus};
  PALMSHED_TRY(plan.timeout, Lower("timeout", asked.timeout, sandbox.timeout));
  PALMSHED_TRY(plan.max_output, Lower("maxOutputBytes", asked.max_output, sandbox.max_output));
  PALMSHED_TRY(pending.memory, Lower("memory", asked.memory, sandbox.memory));
  PALMSHED_TRY(pending.cpu_quota, Lower("cpuQuota", asked.cpu_quota, sandbox.cpu_quota));
  PALMSHED_TRY(pending.pids, Lower("pids", asked.pids, sandbox.pids));
  PALMSHED_TRY(pending.cpu_time_limit,
               Lower("cpuTimeLimit", asked.cpu_time_limit, sandbox.cpu_time_limit));
  return RequirePending(pending, concessions);
}

Result<void> PlanProgram(const ExecRequest& request, const SandboxPlan& sandbox, ExecPlan& plan) {
  const Env env = Merge(sandbox.env, request.options.env);
  PALMSHED_TRY(plan.argv, Argv(request));
  plan.env = Flatten(env);
  PALMSHED_TRY_VOID(CheckFits(plan.argv, plan.env));
  PALMSHED_TRY(plan.paths, Candidates(plan.argv[0], Lookup(env, "PATH")));
  return {};
}

void PlanStdin(const ExecOptions& options, ExecPlan& plan) {
  const bool fed = options.stdin_pipe || !options.stdin_bytes.empty();
  plan.stdin_kind = fed ? StdinKind::kPipe : StdinKind::kNull;
  plan.close_stdin = fed && !options.stdin_pipe;
}

}  // namespace

Result<SandboxPlan> PlanSandbox(const SandboxOptions& options, const Offer& offer) {
  PALMSHED_TRY_VOID(model::Validate(options));
  if (!options.image.empty() && !offer.images) {
    return std::unexpected(
        InvalidOption("image", "must not be given: backend " + offer.backend + " has no images"));
  }
  PALMSHED_TRY_VOID(RefusePendingOptions(options));
  SandboxPlan plan{.backend = offer.backend};
  Concessions concessions(options.degraded, {});
  PALMSHED_TRY_VOID(PlanView(options, offer, plan));
  PALMSHED_TRY_VOID(PlanProc(offer, plan, concessions));
  PALMSHED_TRY_VOID(PlanNetwork(options, offer, plan, concessions));
  PALMSHED_TRY_VOID(PlanLimits(options, offer, plan, concessions));
  NoteGroups(offer, concessions);
  plan.env = Merge(DefaultEnv(offer), options.env);
  PALMSHED_TRY_VOID(CheckFits({}, Flatten(plan.env)));
  plan.work_dir = options.work_dir;
  plan.name = options.name;
  plan.labels = options.labels;
  plan.weaker = concessions.TakeWeaker();
  return plan;
}

Result<ExecPlan> PlanExec(const ExecRequest& request, const SandboxPlan& sandbox) {
  const ExecOptions& options = request.options;
  PALMSHED_TRY_VOID(model::Validate(request));
  PALMSHED_TRY_VOID(RefusePending(options.tty.has_value(), "tty"));
  PALMSHED_TRY_VOID(RefusePending(options.descendants != Descendants::kKill, "descendants"));
  ExecPlan plan;
  Concessions concessions(sandbox.degraded, sandbox.weaker);
  PALMSHED_TRY_VOID(PlanExecLimits(options, sandbox, plan, concessions));
  PALMSHED_TRY_VOID(PlanProgram(request, sandbox, plan));
  PlanStdin(options, plan);
  plan.workspace = sandbox.workspace;
  plan.work_dir = options.work_dir.empty() ? sandbox.work_dir : options.work_dir;
  plan.weaker = concessions.TakeWeaker();
  return plan;
}

}  // namespace palmshed::plan
