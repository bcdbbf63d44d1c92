// The engine's end of one sandbox: requests to its init, replies from it, its death.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/native/disk_enforcer.h"
#include "backends/native/enforcement.h"
#include "backends/native/enforcer.h"
#include "backends/native/exec_message.h"
#include "backends/native/launcher.h"
#include "backends/native/limited_sandbox.h"
#include "backends/native/state.h"
#include "base/laps.h"
#include "base/loop.h"
#include "base/unique_fd.h"
#include "base/worker.h"
#include "child/wire.h"
#include "palmshed/error.h"
#include "plan/plan.h"

namespace palmshed::backends::native {

/// Requests go out on the caller's thread; replies are read on the loop's. Two descriptors: init's
/// socket and pidfd. Everything that waits for a reply is answered when init dies.
class NativeSandbox final : public BackendSandbox {
 public:
  struct Parts {
    Loop* loop{};
    /// Lives as long as its sandboxes; null: init is this process's own child.
    std::shared_ptr<Launcher> launcher{};
    UniqueFd socket{};
    UniqueFd pidfd{};
    std::optional<SandboxHome> home{};  ///< Always set.
    bool supervised = false;            ///< Without a pid namespace: a guard ends what init leaves.
    std::optional<std::uint32_t> owner{};  ///< Host uid of the sandbox, when not the engine's own.
    /// What holds executions to their limits, and the thread on which they are prepared.
    std::function<std::vector<std::shared_ptr<EnforcerSource>>(const LimitedSandbox&)> enforcers{};
    Worker* worker{};             ///< For preparing executions.
    bool bears = false;           ///< Init's children can bear more than one program.
    std::string no_tcp_tables{};  ///< Why its sockets cannot be looked at; empty: they can.
    plan::Limits ceilings{};      ///< Of every execution.
    std::optional<SandboxDisk> disk{};
    std::function<void()> lost{};
  };

  /// Waits until init is ready. The error's `op` names the step that failed.
  static Result<std::unique_ptr<NativeSandbox>> Create(Parts parts, Laps& laps);
  ~NativeSandbox() override;
  NativeSandbox(const NativeSandbox&) = delete;
  NativeSandbox& operator=(const NativeSandbox&) = delete;

  void Kill() override;
  Result<std::uint32_t> Start(const plan::ExecPlan& plan, Stdio stdio,
                              std::function<void(const ExecEnd&)> ended) override;
  Result<void> Signal(std::uint32_t execution, int signal, bool all) override;
  Result<UniqueFd> OpenWorkspace() override { return OpenInside(child::Inside::kWorkspace); }
  Result<std::vector<UniqueFd>> OpenTcpTables() override;
  std::optional<std::uint32_t> FileOwner() const override { return parts_.owner; }
  std::shared_ptr<workspace::DiskAccount> Account() const override { return disk_.account; }
  Result<void> Destroy(Laps& laps) override;

 private:
  using Ended = std::function<void(const ExecEnd&)>;
  struct Running {
    Ended ended;
    EnforcedExecution limits;
    Laps laps;                                   ///< From the call of Start.
    bool killed = false;                         ///< SIGKILL was sent to its main process or all.
    std::unique_ptr<Loop::Timer> watch_later{};  ///< The loop's thread only.
  };

  explicit NativeSandbox(Parts parts);
  Result<void> AwaitReady(Laps& laps);
  Result<std::uint32_t> StartCounted(const plan::ExecPlan& plan, Stdio stdio, Ended ended);
  Result<void> HandOver(Stdio& stdio) const;
  /// Errors: BACKEND_LOST when init is dead.
  Result<void> TellInit(std::span<const std::byte> request) const;
  std::vector<std::shared_ptr<EnforcerSource>> FindEnforcers();
  /// Waits for init's answer.
  Result<UniqueFd> OpenInside(child::Inside what);
  bool IsEnding() const;
  Result<std::uint32_t> AskForChild(ChildRole role);
  void DismissChild(std::uint32_t child) const;
  /// Takes the limits up, registers the execution and sends it. ESTALE: its child had died before.
  Result<std::uint32_t> StartOn(const plan::ExecPlan& plan, const Stdio& stdio, Ended& ended);
  Result<void> AwaitDeath();
  Result<void> RemoveHome(Laps& laps);
  void AwaitStarts();
  // On the loop's thread.
  void Watch();
  void OnReadable();
  void OnReply(const child::InitReply& reply, std::vector<UniqueFd> fds);
  void OnArmed(const child::InitReply& reply, std::vector<UniqueFd> fds);
  void OnDisarmed(std::uint32_t child);
  void OnDetached(const child::InitReply& reply);
  void OnEnded(const child::InitReply& reply, std::vector<UniqueFd> fds);
  void OnConcluded(std::uint32_t execution);
  void PrepareAfter(std::chrono::nanoseconds delay);
  void RestLater();
  void RestIfDue();
  void OnSent(std::uint32_t execution);
  void WatchLimitsLater(std::uint32_t execution);
  void WatchLimits(std::uint32_t execution);
  void OnExceeded(std::uint32_t execution);
  void OnDead();

  struct Ending {
    Running running;
    ExecEnd end;
    bool child_waits = false;  ///< What bore it waits for another.
  };

  Parts parts_;
  DiskLimit disk_{};  ///< Nothing without a quota.
  Enforcement enforcement_;
  std::unique_ptr<Loop::Watch> watch_;  ///< The loop's thread only, as the next four.
  std::unique_ptr<Loop::Timer> prepare_;
  std::unique_ptr<Loop::Timer> rest_;
  std::chrono::steady_clock::time_point rest_due_;
  std::map<std::uint32_t, Ending> ending_;  ///< Dead; what became of them is being found out.

  std::atomic<bool> killed_ = false;
  std::mutex mu_;
  bool dead_ = false;  ///< No reply will come any more.
  bool destroyed_ = false;
  int starting_ = 0;  ///< Calls of Start that are under way.
  std::condition_variable none_starting_;
  std::uint32_t sequence_ = 0;
  std::map<std::uint32_t, Running> running_;
  std::set<std::uint32_t> gone_;  ///< Children that died while a Start was under way.
  std::map<std::uint32_t, std::promise<Result<UniqueFd>>> opening_;
};

}  // namespace palmshed::backends::native
