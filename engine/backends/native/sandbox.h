// The engine's end of one sandbox: requests to its init, replies from it, its death.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "backends/backend.h"
#include "backends/native/launcher.h"
#include "backends/native/state.h"
#include "base/loop.h"
#include "base/unique_fd.h"
#include "child/wire.h"
#include "palmshed/error.h"
#include "plan/plan.h"

namespace palmshed::backends::native {

/// Requests go out on the caller's thread; replies are read on the loop's. Two descriptors: init's
/// socket and pidfd. Everything that waits for a reply is answered when init dies.
class NativeSandbox final : public BackendSandbox {
 public:
  struct Parts {
    Loop* loop;
    std::shared_ptr<Launcher> launcher;  ///< Lives as long as its sandboxes.
    UniqueFd socket;
    UniqueFd pidfd;
    SandboxHome home;
    bool supervised;  ///< Without a pid namespace: a guard ends what init leaves.
    std::optional<std::uint32_t> owner;  ///< Host uid of the sandbox, when not the engine's own.
    std::function<void()> lost;
  };

  /// Waits until init is ready. The error's `op` names the step that failed.
  static Result<std::unique_ptr<NativeSandbox>> Create(Parts parts);
  ~NativeSandbox() override;
  NativeSandbox(const NativeSandbox&) = delete;
  NativeSandbox& operator=(const NativeSandbox&) = delete;

  void Kill() override;
  Result<std::uint32_t> Start(const plan::ExecPlan& plan, Stdio stdio,
                              std::function<void(const ExecEnd&)> ended) override;
  Result<void> Signal(std::uint32_t execution, int signal, bool all) override;
  Result<UniqueFd> OpenWorkspace() override;
  std::optional<std::uint32_t> FileOwner() const override { return parts_.owner; }
  Result<void> Destroy() override;

 private:
  using Ended = std::function<void(const ExecEnd&)>;

  explicit NativeSandbox(Parts parts) : parts_(std::move(parts)) {}
  Result<void> AwaitReady();
  Result<void> HandOver(Stdio& stdio) const;
  // On the loop's thread.
  void OnReadable();
  void OnReply(const child::InitReply& reply, UniqueFd fd);
  void OnDead();

  Parts parts_;
  std::unique_ptr<Loop::Watch> watch_;  ///< The loop's thread only.

  std::mutex mu_;
  bool dead_ = false;  ///< No reply will come any more.
  bool destroyed_ = false;
  std::uint32_t sequence_ = 0;
  std::map<std::uint32_t, Ended> running_;
  std::map<std::uint32_t, std::promise<Result<UniqueFd>>> workspaces_;
};

}  // namespace palmshed::backends::native
