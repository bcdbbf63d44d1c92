// A request, the sandbox's defaults and what the backend offers, turned into a plan with nothing
// optional left; or a refusal. No kernel call happens here.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "palmshed/error.h"
#include "palmshed/json.h"
#include "palmshed/options.h"
#include "palmshed/units.h"

namespace palmshed::plan {

inline constexpr Bytes kDefaultMaxOutput{16U << 20};
inline constexpr std::size_t kMaxCommandBytes = 131071;  ///< One argument's limit, execve(2).
inline constexpr char kWorkspace[] = "/workspace";

/// Limits of one execution that a backend has to enforce; zero: none.
struct Limits {
  Millis cpu_time{0};    ///< Of all its processes.
  double cpu_quota = 0;  ///< Processors. None where there are no more of them anyway.
  Bytes memory{};
  std::uint64_t pids = 0;  ///< Processes and threads.
  Bytes disk{};            ///< Of the sandbox's files.

  bool operator==(const Limits&) const = default;
  bool any() const { return *this != Limits{}; }
};

/// How well a limit is enforced.
enum class Enforcement : std::uint8_t {
  kNone,
  kSampled,  ///< The engine looks every now and then: what is quicker than that gets further.
  kKernel,
};

/// What a backend can enforce on this host, found out before the first plan. A control that is not
/// on offer is refused with the reason and remedy given here.
struct Offer {
  struct Missing {
    std::string reason;
    std::string remedy;
  };
  struct Limit {
    Enforcement enforcement = Enforcement::kNone;
    Missing missing{};        ///< With kNone.
    std::string mechanism{};  ///< For people, e.g. "cgroup v2"; several joined by ", ".
  };
  std::string backend;
  bool private_view = false;  ///< A file view of its own.
  Missing private_view_missing{};
  bool filtered_view = false;          ///< The weaker rung: workspace at its host path.
  std::string workspace = kWorkspace;  ///< As the program sees it.
  std::string tmp = "/tmp";            ///< A directory of the sandbox's own.
  bool network_disabled = false;
  Missing network_missing{};
  /// Landlock keeps signals, and with "allow" abstract sockets, inside.
  bool scopes = false;
  bool groups_dropped = false;
  bool fresh_proc = false;  ///< A /proc of its own can be mounted.
  Missing proc_missing{};
  bool terminals = false;  ///< A /dev/pts of its own is mounted.
  Missing terminals_missing{};
  std::vector<std::string> search_path{};  ///< PATH inside: fixed directories plus runtimes found.
  Env runtime_env{};                       ///< Variables that the runtimes need, e.g. RUSTUP_HOME.
  bool images = false;                     ///< Sandboxes are made from images.
  double usable_cpus = 0;                  ///< A quota from here up needs no enforcing; 0: unknown.
  Limit cpu_time{};
  Limit cpu_quota{};
  Limit memory{};
  Limit pids{};
  bool pids_of_sandbox = false;  ///< The limit counts processes of the whole sandbox.
  Limit disk{};                  ///< Storage::kDisk; the other storages are their own quota.
  Limit storage_memory{};        ///< Storage::kMemory; enforced means that it is to be had.
  Limit storage_loop{};          ///< Storage::kLoop
  /// Fills in the limits, from `cpu_time` on, when one is first asked for: whoever asks for none
  /// need not wait for the answer. Empty: they are filled in. Any thread.
  std::function<void(Offer&)> find_limits{};
};

/// A sandbox as it will be made.
struct SandboxPlan {
  std::string backend;
  Network network = Network::kDisabled;
  bool private_view = true;  ///< False: the caller opted out, or the rung is filtered.
  bool filtered_view = false;
  std::string workspace = kWorkspace;  ///< As the program sees it.
  bool proc = true;        ///< False when `degraded` names it, and in the filtered view.
  Env env{};               ///< Complete: defaults, runtimes, the caller's on top.
  std::string work_dir{};  ///< Relative to the workspace; empty: the workspace itself.
  Millis timeout{0};       ///< Zero: none. Default and ceiling.
  Bytes max_output = kDefaultMaxOutput;  ///< Default and ceiling.
  Limits ceilings{};                     ///< As asked for, the quota included: executions may
                                         ///< lower them. What is not enforced is among `degraded`.
  Storage storage = Storage::kDisk;
  std::vector<Mount> mounts{};          ///< Host paths to show.
  Offer offer{};                        ///< What executions may ask for.
  std::vector<std::string> degraded{};  ///< Controls that executions may go without.
  std::string name{};
  std::vector<std::pair<std::string, std::string>> labels{};
  std::vector<std::string> weaker{};  ///< Controls that are weaker and were named in `degraded`.
};

enum class StdinKind : std::uint8_t { kNull, kPipe };

/// One execution as it will be started.
struct ExecPlan {
  std::vector<std::string> argv{};
  std::vector<std::string> paths{};    ///< Candidates to execute, in order.
  std::vector<std::string> env{};      ///< "NAME=value", no name twice.
  std::string workspace = kWorkspace;  ///< As the program sees it.
  std::string work_dir{};              ///< Relative to the workspace; empty: the workspace itself.
  Millis timeout{0};
  Bytes max_output = kDefaultMaxOutput;
  StdinKind stdin_kind = StdinKind::kNull;
  bool close_stdin = false;  ///< After `stdin_bytes`.
  Descendants descendants = Descendants::kKill;
  bool timings = false;                    ///< The result says where the time went.
  std::optional<TerminalSize> terminal{};  ///< In place of the three streams.
  Limits limits{};                         ///< What to enforce: without what is conceded or free.
  std::vector<std::string> weaker{};  ///< Of the sandbox, and of what this execution asked for.
};

/// INVALID_OPTIONS or UNSUPPORTED, before anything is made.
Result<SandboxPlan> PlanSandbox(const SandboxOptions& options, const Offer& offer);
/// INVALID_OPTIONS or UNSUPPORTED, before anything runs.
Result<ExecPlan> PlanExec(const ExecRequest& request, const SandboxPlan& sandbox);

}  // namespace palmshed::plan
