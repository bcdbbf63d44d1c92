// A sandbox as the engine sees it: its plan, its backend's half, and what runs in it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "base/loop.h"
#include "base/unique_fd.h"
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

/// live -> gone (destroyed, or lost with its init). Any thread.
class SandboxState : public std::enable_shared_from_this<SandboxState> {
 public:
  struct Context {
    Loop* loop;                  ///< The engine's.
    std::weak_ptr<void> engine;  ///< Kept alive during a call; expired: the engine is gone.
    std::function<void(Event)> emit;
    /// Destroys it in the background, for an owner who does not wait.
    std::function<void(std::shared_ptr<SandboxState>)> abandon;
    std::function<Result<Capabilities>()> capabilities;
    std::function<void(const std::string& id)> gone;  ///< Runs once, when it is destroyed.
  };

  SandboxState(std::string id, Context context);

  /// Before anything but OnLost.
  void Attach(backends::PlannedSandbox made);
  const std::string& id() const { return id_; }
  const std::string& backend_name() const { return plan_.backend; }
  Result<Capabilities> GetCapabilities() const;

  Result<std::shared_ptr<ExecutionState>> Start(const ExecRequest& request);
  /// The workspace for one file operation.
  Result<workspace::Workspace> OpenWorkspace() const;
  SandboxTimings timings() const;
  /// As Sandbox::WaitForPort.
  Result<void> WaitForPort(std::uint16_t port, Millis limit, const std::stop_token& stop) const;
  /// Kills at once; the files go in the background.
  void Abandon();
  /// Kills at once and leaves the rest to Destroy.
  void Kill();
  Result<void> Destroy();
  /// The backend says that init is dead.
  void OnLost();

 private:
  Result<std::shared_ptr<backends::BackendSandbox>> Live() const;
  bool BeginDestroy(std::shared_ptr<backends::BackendSandbox>& backend);
  void AwaitExecutions();
  Result<void> MakeWorkDir(const std::string& work_dir) const;
  void OnSettled(const ExecResult& result);
  void EmitLimit(const std::string& execution, const Termination& termination) const;

  const std::string id_;
  plan::SandboxPlan plan_;  ///< Constant once attached.
  Context context_;

  mutable std::mutex mu_;
  mutable std::condition_variable changed_;
  std::shared_ptr<backends::BackendSandbox> backend_;  ///< Null once destroyed.
  std::map<std::string, std::shared_ptr<ExecutionState>> running_;
  SandboxTimings timings_;
  bool destroying_ = false;
  bool lost_ = false;
};

}  // namespace palmshed::run
