#include "run/sandbox.h"

#include <algorithm>
#include <chrono>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "base/result.h"
#include "model/validate.h"
#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/events.h"
#include "palmshed/json.h"
#include "palmshed/result.h"
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

}  // namespace

SandboxState::SandboxState(std::string id, plan::SandboxPlan plan, Context context)
    : id_(std::move(id)), plan_(std::move(plan)), context_(std::move(context)) {}

void SandboxState::Attach(std::shared_ptr<backends::BackendSandbox> backend) {
  const std::lock_guard lock(mu_);
  backend_ = std::move(backend);
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
  // The loop must outlive this call even when another thread is shutting the engine down.
  const auto engine = context_.engine.lock();
  PALMSHED_TRY_VOID(model::Validate(request));
  PALMSHED_TRY(auto backend, Live());
  PALMSHED_TRY(const plan::ExecPlan plan, plan::PlanExec(request, plan_));
  PALMSHED_TRY_VOID(MakeWorkDir(plan.work_dir));
  PALMSHED_TRY(
      auto execution,
      ExecutionState::Start({.loop = context_.loop,
                             .sandbox = std::move(backend),
                             .backend = plan_.backend,
                             .weaker = plan.weaker,
                             .settled = [self = shared_from_this()](
                                            const ExecResult& result) { self->OnSettled(result); }},
                            plan, request.options));
  Event event = MakeEvent("exec.start", id_, execution->id());
  event.fields.emplace_back("timeoutMs", std::to_string(plan.timeout.count()));
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
  return workspace::Workspace(std::move(root), backend->FileOwner());
}

void SandboxState::OnSettled(const ExecResult& result) {
  Event event = MakeEvent("exec.end", id_, result.id);
  event.fields = {{"status", std::string(ToString(result.status))},
                  {"cause", std::string(ToString(result.termination.cause))},
                  {"exitCode", std::to_string(result.exit_code)},
                  {"durationMs", std::to_string(result.duration.count())}};
  if (result.status == Status::kTimedOut) {
    Event enforced = MakeEvent("resource.enforced", id_, result.id);
    enforced.fields = {{"resource", "timeout"},
                       {"limitMs", std::to_string(result.termination.limit.value_or(0))}};
    context_.emit(std::move(enforced));
  }
  context_.emit(std::move(event));
  const std::lock_guard lock(mu_);
  running_.erase(result.id);
  changed_.notify_all();
}

void SandboxState::OnLost() {
  const std::lock_guard lock(mu_);
  lost_ = true;
}

void SandboxState::Kill() {
  const std::lock_guard lock(mu_);
  for (const auto& [id, execution] : running_) execution->MarkCancelled();
  if (backend_) backend_->Kill();
}

void SandboxState::Abandon() {
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
  std::shared_ptr<backends::BackendSandbox> backend;
  if (!BeginDestroy(backend)) return {};
  const auto destroyed = backend->Destroy();
  AwaitExecutions();
  {
    const std::lock_guard lock(mu_);
    backend_.reset();
    destroying_ = false;
    changed_.notify_all();
  }
  context_.emit(MakeEvent("backend.destroy", id_));
  context_.gone(id_);
  return destroyed;
}

}  // namespace palmshed::run
