#include "plan/plan.h"

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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
  if (plan.private_view || plan.filtered_view) return {};
  // The host's own files take namespaces too; where there are none, that is what is missing.
  if (!wanted && offer.private_view_missing.reason.empty()) return {};
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
      if (offer.scopes) return {};
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

/// Files of the host keep their owners and modes, so whoever has a group of the engine's user
/// inside has its rights to them.
Result<void> PlanMounts(const SandboxOptions& options, const Offer& offer, SandboxPlan& plan,
                        Concessions& concessions) {
  if (options.mounts.empty()) return {};
  if (plan.filtered_view) {
    return RefuseMissing("mounts", {.reason = "they take a view of the sandbox's own: " +
                                              offer.private_view_missing.reason,
                                    .remedy = offer.private_view_missing.remedy});
  }
  if (!plan.private_view) {
    return RefuseMissing("mounts", {.reason = "they take a view of the sandbox's own",
                                    .remedy = "Leave osFilesystemIsolation out."});
  }
  if (!offer.groups_dropped) {
    PALMSHED_TRY_VOID(concessions.Require(
        "groups", "mounts",
        "the supplementary groups of the engine's user cannot be dropped, and would reach them",
        "Give the user a subordinate gid: usermod --add-subgids 200000-200000 \"$USER\", or name "
        "groups in degraded to accept that."));
  }
  plan.mounts = options.mounts;
  return {};
}

Result<void> RefusePendingOptions(const SandboxOptions& options) {
  const Millis none{0};
  PALMSHED_TRY_VOID(RefusePending(!options.network_allow.empty(), "networkAllow"));
  PALMSHED_TRY_VOID(RefusePending(!options.proxy_url.empty(), "proxyUrl"));
  PALMSHED_TRY_VOID(RefusePending(options.idle_timeout.value_or(none) != none, "idleTimeout"));
  return RefusePending(options.max_lifetime.value_or(none) != none, "maxLifetime");
}

/// Storage of a fixed size is its own quota, so the offer of one for directories does not matter
/// there.
Result<void> PlanStorage(const SandboxOptions& options, SandboxPlan& plan) {
  plan.storage = options.storage;
  if (options.storage == Storage::kDisk) return {};
  plan.offer = WithLimits(std::move(plan.offer));
  const bool in_memory = options.storage == Storage::kMemory;
  const Offer::Limit& offered = in_memory ? plan.offer.storage_memory : plan.offer.storage_loop;
  if (offered.enforcement == Enforcement::kNone) {
    return RefuseMissing("storage",
                         {.reason = offered.missing.reason.empty()
                                        ? "no storage of this kind is to be had on this host"
                                        : offered.missing.reason,
                          .remedy = offered.missing.remedy.empty() ? "Use storage \"disk\"."
                                                                   : offered.missing.remedy});
  }
  plan.offer.disk = offered;
  if (options.disk_quota.value_or(Bytes{}) != Bytes{}) return {};
  return std::unexpected(
      InvalidOption("diskQuota", "must be given: it is the size of the storage"));
}

Result<void> PlanLimits(const SandboxOptions& options, const Offer& offer, SandboxPlan& plan,
                        Concessions& concessions) {
  const Bytes max_output = options.max_output.value_or(Bytes{});
  plan.timeout = options.timeout.value_or(Millis{0});
  plan.max_output = max_output == Bytes{} ? kDefaultMaxOutput : max_output;
  plan.ceilings = {.cpu_time = options.cpu_time_limit.value_or(Millis{0}),
                   .cpu_quota = options.cpu_quota.value_or(options.cpu.value_or(0)),
                   .memory = options.memory.value_or(Bytes{}),
                   .pids = options.pids.value_or(0),
                   .disk = options.disk_quota.value_or(Bytes{})};
  plan.offer = offer;
  plan.degraded = options.degraded;
  const std::string_view quota_field = options.cpu_quota ? "cpuQuota" : "cpu";
  PALMSHED_TRY_VOID(PlanStorage(options, plan));
  // Its executions have limits too, and need not find out again.
  if (plan.ceilings.any()) plan.offer = WithLimits(std::move(plan.offer));
  PALMSHED_TRY_VOID(Enforceable(plan.ceilings, quota_field, plan.offer, concessions));
  return {};
}

// Without mounts it does no harm that an ordinary user's supplementary groups are kept; who said
// that they accept it is told all the same.
void NoteGroups(const Offer& offer, Concessions& concessions) {
  if (!offer.groups_dropped) (void)concessions.Concede("groups");  // Ignoring: nothing to refuse.
}

Result<void> PlanExecLimits(const ExecOptions& asked, const SandboxPlan& sandbox, ExecPlan& plan,
                            Concessions& concessions) {
  const Limits& ceilings = sandbox.ceilings;
  Limits limits{.disk = ceilings.disk};
  PALMSHED_TRY(plan.timeout, Lower("timeout", asked.timeout, sandbox.timeout));
  PALMSHED_TRY(plan.max_output, Lower("maxOutputBytes", asked.max_output, sandbox.max_output));
  PALMSHED_TRY(limits.memory, Lower("memory", asked.memory, ceilings.memory));
  PALMSHED_TRY(limits.cpu_quota, Lower("cpuQuota", asked.cpu_quota, ceilings.cpu_quota));
  PALMSHED_TRY(limits.pids, Lower("pids", asked.pids, ceilings.pids));
  PALMSHED_TRY(limits.cpu_time, Lower("cpuTimeLimit", asked.cpu_time_limit, ceilings.cpu_time));
  PALMSHED_TRY(plan.limits, Enforceable(limits, "cpuQuota", sandbox.offer, concessions));
  return {};
}

Result<void> PlanProgram(const ExecRequest& request, const SandboxPlan& sandbox, ExecPlan& plan) {
  Env env = Merge(sandbox.env, request.options.env);
  if (request.options.tty) env = Merge(TerminalEnv(), env);
  PALMSHED_TRY(plan.argv, Argv(request));
  plan.env = Flatten(env);
  PALMSHED_TRY_VOID(CheckFits(plan.argv, plan.env));
  PALMSHED_TRY(plan.paths, Candidates(plan.argv[0], Lookup(env, "PATH")));
  return {};
}

Result<void> RefuseTerminal(const ExecOptions& options, const Offer& offer) {
  if (!options.tty || offer.terminals) return {};
  return RefuseMissing("tty", offer.terminals_missing);
}

/// A terminal is there for input too, which ends at once where nobody gives any.
void PlanStreams(const ExecOptions& options, ExecPlan& plan) {
  const bool fed = options.stdin_pipe || !options.stdin_bytes.empty();
  plan.terminal = options.tty;
  plan.stdin_kind = fed && !options.tty ? StdinKind::kPipe : StdinKind::kNull;
  plan.close_stdin = (fed || options.tty) && !options.stdin_pipe;
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
  PALMSHED_TRY_VOID(PlanMounts(options, offer, plan, concessions));
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
  PALMSHED_TRY_VOID(RefuseTerminal(options, sandbox.offer));
  ExecPlan plan;
  Concessions concessions(sandbox.degraded, sandbox.weaker);
  PALMSHED_TRY_VOID(PlanExecLimits(options, sandbox, plan, concessions));
  PALMSHED_TRY_VOID(PlanProgram(request, sandbox, plan));
  PlanStreams(options, plan);
  plan.descendants = options.descendants;
  plan.timings = options.timings;
  plan.workspace = sandbox.workspace;
  plan.work_dir = options.work_dir.empty() ? sandbox.work_dir : options.work_dir;
  plan.weaker = concessions.TakeWeaker();
  return plan;
}

}  // namespace palmshed::plan
