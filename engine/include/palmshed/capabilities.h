// What a backend can do on this host. Mirrors spec/schemas/capabilities.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "palmshed/options.h"

namespace palmshed {
inline namespace v1 {

/// How far an answer can be trusted.
enum class Support : std::uint8_t {
  kSupported,    ///< A self-test on this host showed it.
  kUnsupported,  ///< A self-test on this host failed, or there is nothing to test.
  kUnknown,      ///< Not tested.
};

/// One control of the sandbox and what a live test of it showed.
struct Control {
  std::string name{};       ///< E.g. "networkIsolation".
  bool works = false;       ///< The forbidden thing was refused and the allowed thing worked.
  std::string mechanism{};  ///< E.g. "network namespace"; several joined by ", ".
  std::string detail{};     ///< What the test saw.
  std::string lost{};       ///< What is missing without it.
  std::string remedy{};     ///< The exact command that would enable it; empty when none is needed.
};

/// Capabilities of a backend. A flag is true only after a self-test on this host.
struct Capabilities {
  bool filesystem = false;         ///< File operations contained in the workspace.
  bool network_isolation = false;  ///< "disabled" is enforced.
  bool cpu_limits = false;         ///< CPU time budgets.
  bool memory_limits = false;      ///< Memory limits.
  bool streaming = false;          ///< Live output.
  bool remote_execution = false;   ///< Runs on another machine.
  bool cpu_quota_limits = false;   ///< CPU rate limits.
  Support os_filesystem_isolation = Support::kUnknown;  ///< Private view of the file system.
  std::string filesystem_view{};                        ///< "private", "filtered", or "host".
  std::string crash_kill{};                             ///< "kernel" or "supervised".
  std::string host_loopback{};         ///< With network "allow": "reachable" or "unreachable".
  std::string supplementary_groups{};  ///< "dropped" or "kept".
  bool pids_limits = false;            ///< Process count limits.
  std::string pids_scope{};            ///< With pids_limits: "execution" or "sandbox".
  bool disk_quota = false;             ///< Disk quotas with Storage::kDisk, which are measured.
  bool tty = false;                    ///< Terminals.
  bool mounts = false;                 ///< Directories and files of the host can be shown.
  std::string memory_enforcement{};    ///< With memory_limits: "kernel" or "sampled".
  std::string cpu_time_enforcement{};  ///< With cpu_limits: "kernel" or "sampled".
  std::vector<Storage> storage{};      ///< What sandboxes can be made with.
  std::vector<Control> controls{};     ///< The self-test behind each flag.
};

}  // namespace v1
}  // namespace palmshed
