// What a caller asks for. Mirrors spec/schemas/sandbox-options and exec-options.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "palmshed/events.h"
#include "palmshed/units.h"

namespace palmshed {
inline namespace v1 {

/// Environment variables in the order given; a later entry of the same name wins.
using Env = std::vector<std::pair<std::string, std::string>>;

/// What of the network a sandbox can reach.
enum class Network : std::uint8_t {
  kDisabled,  ///< Its own loopback and nothing else.
  kAllow,     ///< The host's network.
  kProxy,     ///< One filtering proxy, nothing else.
};

/// Where a sandbox's writable files live.
enum class Storage : std::uint8_t {
  kDisk,    ///< A directory on the host's disk.
  kMemory,  ///< A tmpfs.
  kLoop,    ///< A file system image of a fixed size.
};

/// What becomes of the processes that a command leaves running when it ends. Whatever else ends an
/// execution (its timeout, a limit, Cancel) ends all of its processes.
enum class Descendants : std::uint8_t {
  kKill,  ///< They are killed (default).
  /// They keep running until the sandbox is destroyed, within the limits of their execution; its
  /// timeout no longer applies. A limit that ends them is an event, the result stays as it was.
  /// What they print can be had by Execution::Read.
  kDetach,
  /// The execution ends when the last of them has; exit code and cause are the command's own.
  kWait,
};

/// One of a program's output streams.
enum class Stream : std::uint8_t {
  kStdout,  ///< Standard output.
  kStderr,  ///< Standard error.
};

/// A host directory, with what is mounted below it, or a regular file, shown inside the sandbox.
/// It keeps its owners and modes; set-user-ID programs and devices in it are of no use.
struct Mount {
  /// Host path, without symbolic links. It is looked up once, when the sandbox is made. Directories
  /// of the system and the engine's own state are refused.
  std::string source{};
  /// Absolute path inside, not within /workspace, /proc, /dev or /sys. It is made as needed, but
  /// not within a directory that comes from the host, such as /usr: there it must exist.
  std::string target{};
  bool read_only = true;  ///< False lets the workload write to it, as far as its modes do.
};

/// Size of a terminal, in character cells.
struct TerminalSize {
  std::uint16_t rows = 24;     ///< Height.
  std::uint16_t columns = 80;  ///< Width.
};

/// Defaults and ceilings of a sandbox. Every limit given here is the default of its executions and
/// the most that one of them may ask for. An absent limit, or zero, is no limit.
struct SandboxOptions {
  std::string backend = "native";                 ///< Name of the backend.
  std::optional<double> cpu{};                    ///< Cores; `cpu_quota` wins over it.
  std::optional<double> cpu_quota{};              ///< Cores, at least 0.1: throttled, never killed.
  std::optional<Millis> cpu_time_limit{};         ///< CPU time of an execution and all it starts.
  std::optional<Bytes> memory{};                  ///< Memory of an execution.
  std::optional<Bytes> disk_quota{};              ///< Disk use of workspace and /tmp.
  std::optional<Millis> timeout{};                ///< Wall-clock limit of an execution.
  Network network = Network::kDisabled;           ///< What of the network is reachable.
  std::string work_dir{};                         ///< Relative to the workspace; made if absent.
  Env env{};                                      ///< On top of the defaults of every execution.
  std::optional<bool> os_filesystem_isolation{};  ///< False opts out of the private file view.
  std::string image{};                            ///< For backends that have images.
  std::optional<std::uint64_t> pids{};            ///< Most processes and threads of an execution.
  std::optional<Bytes> max_output{};              ///< Output kept per stream; default 16 MiB.
  std::vector<Mount> mounts{};                    ///< Host paths to show inside.
  std::vector<std::string> network_allow{};       ///< Hosts that the proxy lets through.
  std::string proxy_url{};                        ///< Upstream of the proxy.
  std::vector<std::string> degraded{};            ///< Controls whose absence is accepted, by name.
  std::string name{};                             ///< For people; need not be unique.
  std::vector<std::pair<std::string, std::string>> labels{};  ///< For programs; kept as given.
  std::optional<Millis> idle_timeout{};  ///< Destroyed after so long without use.
  std::optional<Millis> max_lifetime{};  ///< Destroyed when this old.
  Storage storage = Storage::kDisk;      ///< Where writable files live.
};

/// How one command runs. Limits may lower the sandbox's, never raise them.
struct ExecOptions {
  std::optional<Millis> timeout{};         ///< Wall-clock limit.
  std::optional<Millis> cpu_time_limit{};  ///< CPU time limit.
  std::optional<double> cpu_quota{};       ///< Cores.
  std::optional<Bytes> memory{};           ///< Memory limit.
  std::optional<std::uint64_t> pids{};     ///< Most processes and threads.
  std::optional<Bytes> max_output{};       ///< Output kept per stream.
  std::string work_dir{};                  ///< Relative to the workspace; made if absent.
  Env env{};                               ///< On top of the sandbox's.
  std::string stdin_bytes{};               ///< Fed to the program, then end of file.
  bool stdin_pipe = false;                 ///< Execution::Write feeds the program; else /dev/null.
  /// Run on a terminal of this size, the sandbox's own and nobody else's: all output is standard
  /// output, and input is typed. UNSUPPORTED without a private file view of the sandbox's own.
  std::optional<TerminalSize> tty{};
  Descendants descendants = Descendants::kKill;  ///< Fate of what it leaves running.
  bool timings = false;                          ///< ExecResult::timings: where the time went.
  /// Called with every piece of output, in order per stream, on a thread that the execution has for
  /// this alone. Blocking it holds up this execution and no other; calling its Wait() in it is
  /// CONFLICT. The execution ends when everything has been delivered. The bytes are valid during
  /// the call.
  std::function<void(Stream, std::span<const std::byte>)> on_output{};
};

/// How an engine is set up.
struct EngineOptions {
  /// Directory of workspaces; empty: /var/lib/palmshed as root, else $XDG_STATE_HOME/palmshed, else
  /// a private directory beneath the temporary directory.
  std::string workspace_root{};
  /// Where programs outside /usr are looked for, colon-separated; empty: the PATH of this process.
  std::string search_path{};
  /// Called on the engine's thread for each event; must not block. See palmshed/events.h.
  std::function<void(const Event&)> on_event{};
};

}  // namespace v1
}  // namespace palmshed
