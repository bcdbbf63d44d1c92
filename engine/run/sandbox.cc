#include "run/sandbox.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "base/laps.h"
#include "base/result.h"
#include "model/validate.h"
#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/events.h"
#include "palmshed/json.h"
#include "palmshed/result.h"
#include "palmshed/units.h"
#include "plan/plan.h"
#include "run/execution.h"
#include "workspace/workspace.h"

namespace palmshed::run {
namespace {

Event MakeEvent(std::string name, std::string sandbox, std::string execution = {}) {
  return {.name = std::move(name),
          .time = std::chrono::system_clock::now(),
          .sandbox = std::move(sandbox),
          .execution = std::move(execution)};
}

/// A limit as events name it; numbers of it have names that end in its unit.
struct Resource {
  std::string_view name;
  std::string_view unit;
};

std::optional<Resource> ResourceOf(Cause cause) {
  switch (cause) {
    case Cause::kWallTimeout:
      return Resource{.name = "timeout", .unit = "Ms"};
    case Cause::kCpuTime:
      return Resource{.name = "cpu", .unit = "Ms"};
    case Cause::kMemory:
      return Resource{.name = "memory", .unit = "Bytes"};
    case Cause::kDisk:
      return Resource{.name = "disk", .unit = "Bytes"};
    case Cause::kPids:
      return Resource{.name = "pids", .unit = ""};
    case Cause::kExited:
    case Cause::kSignaled:
    case Cause::kCancelled:
    case Cause::kStartupFailed:
    case Cause::kBackendLost:
    case Cause::kInternal:
      return std::nullopt;
  }
  PALMSHED_UNREACHABLE();
}

/// The limit that ended an execution, as fields of an event; empty: none did.
std::vector<std::pair<std::string, std::string>> LimitFields(const Termination& termination) {
  const auto resource = ResourceOf(termination.cause);
  if (!resource) return {};
  std::vector<std::pair<std::string, std::string>> fields{
      {"resource", std::string(resource->name)}};
  const auto add = [&](std::string_view name, std::optional<std::uint64_t> value) {
    if (!value) return;
    fields.emplace_back(std::string(name).append(resource->unit), std::to_string(*value));
  };
  add("limit", termination.limit);
  add("observed", termination.observed);
  return fields;
}

/// The limits that hold for an execution, as fields of an event; none for what is not limited.
std::vector<std::pair<std::string, std::string>> LimitFields(const plan::ExecPlan& plan) {
  std::vector<std::pair<std::string, std::string>> fields;
  const auto add = [&](const char* name, auto value) {
    if (value <= 0) return;
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    fields.emplace_back(name, std::string(digits.data(), end));
  };
  add("timeoutMs", plan.timeout.count());
  add("cpuTimeMs", plan.limits.cpu_time.count());
  add("cpuQuota", plan.limits.cpu_quota);
  add("memoryBytes", Count(plan.limits.memory));
  add("pids", plan.limits.pids);
  add("diskBytes", Count(plan.limits.disk));
  add("maxOutputBytes", Count(plan.max_output));
  return fields;
}

/// Forks that the limit on processes refused while the execution went on; 0: none.
std::int64_t PidsRefused(const Termination& termination) {
  if (termination.cause == Cause::kPids) return 0;
  const auto found = std::ranges::find(termination.evidence, backends::kPidsRefused,
                                       [](const auto& entry) { return entry.first; });
  return found == termination.evidence.end() ? 0 : found->second;
}

}  // namespace

SandboxState::SandboxState(std::string id, Context context)
    : id_(std::move(id)), context_(std::move(context)) {}

void SandboxState::Attach(backends::PlannedSandbox made) {
  const std::lock_guard lock(mu_);
  plan_ = std::move(made.plan);
  backend_ = std::move(made.sandbox);
  made.laps.End("attach");
  timings_.create = made.laps.Steps();
}

SandboxTimings SandboxState::timings() const {
  const std::lock_guard lock(mu_);
  return timings_;
}

Result<std::shared_ptr<backends::BackendSandbox>> SandboxState::Live() const {
  const std::lock_guard lock(mu_);
  if (backend_ && !destroying_ && !lost_) return backend_;
  return std::unexpected(
      Error{.code = ErrorCode::kBackendLost,
            .message = id_ + (lost_ ? " was lost: its init process has died" : " is destroyed"),
            .remedy = "create another sandbox"});
}

Result<Capabilities> SandboxState::GetCapabilities() const {
  const auto engine = context_.engine.lock();
  if (!engine) {
    return std::unexpected(Error{.code = ErrorCode::kBackendLost, .message = "the engine is gone"});
  }
  return context_.capabilities();
}

Result<std::shared_ptr<ExecutionState>> SandboxState::Start(const ExecRequest& request) {
  Laps laps(request.options.timings);
  // The loop must outlive this call even when another thread is shutting the engine down.
  const auto engine = context_.engine.lock();
  PALMSHED_TRY_VOID(model::Validate(request));
  PALMSHED_TRY(auto backend, Live());
  PALMSHED_TRY(const plan::ExecPlan plan, plan::PlanExec(request, plan_));
  PALMSHED_TRY_VOID(MakeWorkDir(plan.work_dir));
  laps.End("plan");
  PALMSHED_TRY(
      auto execution,
      ExecutionState::Start(
          {.loop = context_.loop,
           .sandbox = std::move(backend),
           .backend = plan_.backend,
           .weaker = plan.weaker,
           .mounts = plan_.mounts,
           .laps = std::move(laps),
           .settled =
               [self = shared_from_this()](const ExecResult& result) { self->OnSettled(result); },
           .detached_gone =
               [weak = weak_from_this()](const std::string& id, const Termination& termination) {
                 if (const auto self = weak.lock()) {
                   self->EmitLimit(id, termination);
                 }
               }},
          plan, request.options));
  Event event = MakeEvent("exec.start", id_, execution->id());
  event.fields = LimitFields(plan);
  context_.emit(std::move(event));
  const std::lock_guard lock(mu_);
  // One that is settling has been, or is about to be, taken out by OnSettled: never put it in
  // after. Otherwise OnSettled is still to come, and waits for this lock.
  if (!execution->settling()) {
    running_[execution->id()] = execution;
    if (destroying_) execution->MarkCancelled();
  }
  return execution;
}

Result<void> SandboxState::MakeWorkDir(const std::string& work_dir) const {
  if (work_dir.empty()) return {};
  PALMSHED_TRY(auto files, OpenWorkspace());
  return files.MakeDirectory(work_dir, 0755);
}

Result<workspace::Workspace> SandboxState::OpenWorkspace() const {
  PALMSHED_TRY(const auto backend, Live());
  PALMSHED_TRY(auto root, backend->OpenWorkspace());
  return workspace::Workspace(std::move(root), backend->FileOwner(), backend->Account());
}

void SandboxState::OnSettled(const ExecResult& result) {
  Event event = MakeEvent("exec.end", id_, result.id);
  event.fields = {{"status", std::string(ToString(result.status))},
                  {"cause", std::string(ToString(result.termination.cause))},
                  {"exitCode", std::to_string(result.exit_code)},
                  {"durationMs", std::to_string(result.duration.count())}};
  EmitLimit(result.id, result.termination);
  context_.emit(std::move(event));
  const std::lock_guard lock(mu_);
  running_.erase(result.id);
  changed_.notify_all();
}

/// The limits that have ended an execution, or what it had detached, or have refused it something.
void SandboxState::EmitLimit(const std::string& execution, const Termination& termination) const {
  const auto enforced = [&](std::vector<std::pair<std::string, std::string>> fields) {
    Event hit = MakeEvent("resource.enforced", id_, execution);
    hit.fields = std::move(fields);
    context_.emit(std::move(hit));
  };
  if (auto limit = LimitFields(termination); !limit.empty()) enforced(std::move(limit));
  if (const std::int64_t refused = PidsRefused(termination); refused > 0) {
    enforced({{"resource", "pids"}, {"refused", std::to_string(refused)}});
  }
}

void SandboxState::OnLost() {
  const std::lock_guard lock(mu_);
  lost_ = true;
  changed_.notify_all();
}

void SandboxState::Kill() {
  const std::lock_guard lock(mu_);
  for (const auto& [id, execution] : running_) execution->MarkCancelled();
  if (backend_) backend_->Kill();
}

void SandboxState::Abandon() {
  {
    const std::lock_guard lock(mu_);
    if (!backend_) return;
  }
  Kill();
  context_.abandon(shared_from_this());
}

/// False when there is nothing to do: it is destroyed, by this call's wait at the latest.
bool SandboxState::BeginDestroy(std::shared_ptr<backends::BackendSandbox>& backend) {
  std::unique_lock lock(mu_);
  changed_.wait(lock, [this] { return !destroying_; });
  if (!backend_) return false;
  destroying_ = true;
  for (const auto& [id, execution] : running_) execution->MarkCancelled();
  backend = backend_;
  return true;
}

/// A callback that destroys its own sandbox must not wait for itself.
void SandboxState::AwaitExecutions() {
  std::unique_lock lock(mu_);
  changed_.wait(lock, [this] {
    return std::ranges::all_of(running_,
                               [](const auto& entry) { return entry.second->OnOwnThread(); });
  });
}

Result<void> SandboxState::Destroy() {
  Laps laps;
  std::shared_ptr<backends::BackendSandbox> backend;
  if (!BeginDestroy(backend)) return {};
  laps.End("begin");
  const auto destroyed = backend->Destroy(laps);
  AwaitExecutions();
  laps.End("settle");
  {
    const std::lock_guard lock(mu_);
    backend_.reset();
    timings_.destroy = laps.Steps();
    destroying_ = false;
    changed_.notify_all();
  }
  context_.emit(MakeEvent("backend.destroy", id_));
  context_.gone(id_);
  return destroyed;
}

}  // namespace palmshed::run
