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
#include <utility>
#include <vector>

#include "base/laps.h"
#include "base/loop.h"
#include "base/unique_fd.h"
#include "base/worker.h"
#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/options.h"
#include "palmshed/result.h"
#include "palmshed/units.h"
#include "plan/plan.h"

namespace palmshed::workspace {
class DiskAccount;
}

namespace palmshed::backends {

/// The limit that ended an execution.
struct LimitHit {
  Cause cause{};               ///< kCpuTime, kMemory, kDisk or kPids.
  std::uint64_t limit = 0;     ///< In its own unit: ms of CPU time, bytes, processes.
  std::uint64_t observed = 0;  ///< What was measured, in that unit.
};

/// Names in the evidence of an execution that others than its readers rely on
/// (spec/schemas/termination.schema.json has all of them).
inline constexpr char kPidsRefused[] = "pids_refused";  ///< Forks that the limit refused.
inline constexpr char kThrottledMs[] = "throttled_ms";  ///< How long the CPU quota held it up.

/// How an execution ended, as the kernel told it.
struct ExecEnd {
  enum class Kind : std::uint8_t { kExited, kStartupFailed, kLost };
  Kind kind = Kind::kLost;
  int wait_status = 0;       ///< kExited: as of wait(2).
  std::string stage{};       ///< kStartupFailed: "exec", "chdir", ...
  int sys_errno = 0;         ///< kStartupFailed
  bool file_exists = false;  ///< kStartupFailed at "exec": the file is there but cannot run.
  bool killed_leftovers = false;
  bool detached = false;  ///< Its main process has ended, and has left some running.
  std::optional<std::chrono::nanoseconds> cpu_time{};
  std::optional<Bytes> peak_memory{};
  std::optional<LimitHit> hit{};  ///< Decides, unless the engine had decided otherwise before.
  std::vector<std::pair<std::string, std::int64_t>> evidence{};  ///< Counters of the kernel.
  Laps laps{false};  ///< From the call of Start until this is told, where the plan wants timings.
};

/// The child's side of the standard streams; closed by the backend once handed over.
struct Stdio {
  /// Valid: there are no streams but a terminal of the plan's size, which is made inside. Before
  /// the program starts one message with its two ends comes here, master and slave.
  UniqueFd terminal{};
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
  /// processes are dead and reaped. With Descendants::kDetach it may run once before, `detached`,
  /// unless a limit has ended it. An error means that it was not started and `ended` never runs.
  virtual Result<std::uint32_t> Start(const plan::ExecPlan& plan, Stdio stdio,
                                      std::function<void(const ExecEnd&)> ended) = 0;
  /// Sends a signal to the main process, or to every process of an execution. An ended one is
  /// ignored.
  virtual Result<void> Signal(std::uint32_t execution, int signal, bool all) = 0;
  /// The workspace's directory as the program sees it. Blocks; not on the loop's thread.
  virtual Result<UniqueFd> OpenWorkspace() = 0;
  /// Owner of files that the API makes; nullopt: leave it to the kernel.
  virtual std::optional<std::uint32_t> FileOwner() const = 0;
  /// Who grants the API room for what it writes; null: there is no disk quota. Lives on after the
  /// sandbox.
  virtual std::shared_ptr<workspace::DiskAccount> Account() const { return nullptr; }
  /// The kernel's tables of the TCP sockets in the sandbox's own network, as /proc/net/tcp has
  /// them; reading one from its beginning looks again. UNSUPPORTED where there is no such network
  /// or no such table. Blocks; not on the loop's thread.
  virtual Result<std::vector<UniqueFd>> OpenTcpTables() = 0;
  /// Kills everything and returns when nothing of it can run or be seen. Blocks; not on the loop's
  /// thread. Executions still running end as kLost. Idempotent.
  virtual Result<void> Destroy(Laps& laps) = 0;
};

/// A sandbox as it was made.
struct PlannedSandbox {
  plan::SandboxPlan plan;
  std::unique_ptr<BackendSandbox> sandbox;
  Laps laps{};  ///< Of how it was made.
};

/// What needs no test, and what there is to be tested.
struct Description {
  Capabilities capabilities{};  ///< Kinds and mechanisms. Flags come from self-tests.
  plan::Offer offer{};          ///< What Create offers for default options.
};

/// What the outcome of a self-test depends on, and where other processes of this user may look it
/// up.
struct Surroundings {
  std::string facts{};  ///< Whoever finds the same ones is in the same position.
  std::string place{};  ///< A directory in which the backend keeps its state.
};

/// One kind of sandbox. Owned by the engine, used from any thread.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  /// Turns what is on offer here for a request into a plan, or refuses.
  using Planner = std::function<Result<plan::SandboxPlan>(const plan::Offer&)>;
  /// Finds out what can be enforced here for such options, has it planned, and makes the sandbox
  /// that will be called `id`. `planner` may be called more than once: the last plan counts. Cheap
  /// after the first call; may start a launcher. `lost` runs on the loop's thread when the sandbox
  /// dies without having been destroyed.
  virtual Result<PlannedSandbox> Create(const std::string& id, const SandboxOptions& options,
                                        const Planner& planner, std::function<void()> lost) = 0;
  virtual Result<Description> Describe() = 0;
  /// nullopt: not all of it can be known here, and so no self-test stands for another. Starts and
  /// makes nothing; not on the loop's thread.
  virtual std::optional<Surroundings> Survey() { return std::nullopt; }
  /// A program for sandboxes of this backend that tries what run/selftest.h wants to know: it is
  /// run as `probe attempts FILE SOCKET ABSTRACT_NAME PORT PID`, as `probe echo`, on a terminal as
  /// `probe terminal`, as `probe mounted READ_ONLY WRITABLE`, and to use up something as `probe
  /// memory BYTES`, `probe forks COUNT`, `probe cpu CPU_MS WALL_MS` and `probe write BYTES`.
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
