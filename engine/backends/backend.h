// What the engine needs of a backend: make a sandbox, start and signal executions in it, reach its
// files, take it down.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/loop.h"
#include "base/unique_fd.h"
#include "base/worker.h"
#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/options.h"
#include "palmshed/units.h"
#include "plan/plan.h"

namespace palmshed::backends {

/// How an execution ended, as the kernel told it.
struct ExecEnd {
  enum class Kind : std::uint8_t { kExited, kStartupFailed, kLost };
  Kind kind = Kind::kLost;
  int wait_status = 0;       ///< kExited: as of wait(2).
  std::string stage{};       ///< kStartupFailed: "exec", "chdir", ...
  int sys_errno = 0;         ///< kStartupFailed
  bool file_exists = false;  ///< kStartupFailed at "exec": the file is there but cannot run.
  bool killed_leftovers = false;
  std::optional<std::chrono::nanoseconds> cpu_time{};
  std::optional<Bytes> peak_memory{};
};

/// The child's side of the standard streams; closed by the backend once handed over.
struct Stdio {
  UniqueFd in{};  ///< Not valid: the sandbox's own /dev/null.
  UniqueFd out{};
  UniqueFd err{};
};

/// One live sandbox. Any thread, unless said otherwise. The destructor kills at once and does not
/// wait.
class BackendSandbox {
 public:
  virtual ~BackendSandbox() = default;
  /// Ends every process at once; does not wait. Idempotent.
  virtual void Kill() = 0;
  /// Starts an execution; `ended` runs exactly once, on the loop's thread, when all of its
  /// processes are dead and reaped. An error means that it was not started and `ended` never runs.
  virtual Result<std::uint32_t> Start(const plan::ExecPlan& plan, Stdio stdio,
                                      std::function<void(const ExecEnd&)> ended) = 0;
  /// Sends a signal to the main process, or to every process of an execution. An ended one is
  /// ignored.
  virtual Result<void> Signal(std::uint32_t execution, int signal, bool all) = 0;
  /// The workspace's directory as the program sees it. Blocks; not on the loop's thread.
  virtual Result<UniqueFd> OpenWorkspace() = 0;
  /// Owner of files that the API makes; nullopt: leave it to the kernel.
  virtual std::optional<std::uint32_t> FileOwner() const = 0;
  /// Kills everything and returns when nothing of it can run or be seen. Blocks; not on the loop's
  /// thread. Executions still running end as kLost. Idempotent.
  virtual Result<void> Destroy() = 0;
};

/// One kind of sandbox. Owned by the engine, used from any thread.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  /// What can be enforced here for such options in the sandbox that will be called `id`. Cheap
  /// after the first call; may start a launcher.
  virtual Result<plan::Offer> MakeOffer(const std::string& id, const SandboxOptions& options) = 0;
  /// `lost` runs on the loop's thread when the sandbox dies without having been destroyed.
  virtual Result<std::unique_ptr<BackendSandbox>> Create(const std::string& id,
                                                         const plan::SandboxPlan& plan,
                                                         std::function<void()> lost) = 0;
  /// The facts that need no test: kinds and mechanisms. Flags come from self-tests (run/selftest).
  virtual Result<Capabilities> Describe() = 0;
  /// A program for sandboxes of this backend that tries what run/selftest.h wants to know: it is
  /// run as `probe attempts FILE SOCKET ABSTRACT_NAME PORT PID` and as `probe echo`.
  virtual std::span<const std::byte> ProbeProgram() const = 0;
};

/// What every backend is made with.
struct BackendContext {
  Loop* loop;      ///< Outlives the backend, as does the next.
  Worker* worker;  ///< For work that nobody waits for.
  const EngineOptions* options;
  std::function<void(const Event&)> emit;
};

/// The backends built into this library, by name; INVALID_BACKEND otherwise.
Result<std::unique_ptr<Backend>> MakeBackend(std::string_view name, const BackendContext& context);

}  // namespace palmshed::backends
