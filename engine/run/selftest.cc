#include "run/selftest.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "base/result.h"
#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/json.h"
#include "palmshed/options.h"
#include "palmshed/result.h"
#include "palmshed/units.h"
#include "run/execution.h"
#include "run/sandbox.h"
#include "run/selftest_host.h"

namespace palmshed::run {
namespace {

constexpr char kProbe[] = ".palmshed-probe";
constexpr Millis kPatience{10'000};

/// What the probe saw: errno by attempt, 0 where it succeeded.
using Attempts = std::map<std::string, int, std::less<>>;

/// A control, and the attempts that show it: all of `refused` fail, all of `allowed` succeed.
struct Proof {
  std::string_view name;
  std::string_view mechanism;
  std::vector<std::string_view> refused;
  std::vector<std::string_view> allowed;
  std::string_view lost;
  std::string_view note{};  ///< What stays open, or is missing, although the control works.
};

constexpr std::string_view kFilesLost = "programs could read the host's files";
constexpr std::string_view kNetworkLost =
    "programs could reach the network and the host's services";
constexpr std::string_view kProcessesLost = "programs could see and signal the host's processes";
constexpr std::string_view kPrivilegesLost =
    "programs could use kernel interfaces that contained programs never need";

const std::vector<Proof>& PrivateProofs() {
  static const std::vector<Proof> kProofs{
      {"osFilesystemIsolation",
       "mount namespace, Landlock",
       {"host_file", "host_chmod", "host_socket", "write_runtime"},
       {"own_file", "own_tmp", "own_shm", "read_runtime"},
       kFilesLost},
      {"networkIsolation",
       "network namespace, seccomp",
       {"host_tcp", "host_abstract", "host_socket", "raw_socket", "packet_socket", "vsock_socket"},
       {"own_tcp", "own_socketpair"},
       kNetworkLost},
      {"processIsolation",
       "pid namespace, Landlock signal scope",
       {"host_signal"},
       {"own_child"},
       kProcessesLost},
      {"privileges",
       "user namespace, no_new_privs, empty capability sets, seccomp",
       {"become_root", "new_user_namespace", "mount", "keyring", "io_uring"},
       {"own_child"},
       kPrivilegesLost}};
  return kProofs;
}

/// Without namespaces. What a sandbox does not have there is not tried: POSIX shared memory and a
/// loopback of its own.
const std::vector<Proof>& FilteredProofs() {
  static const std::vector<Proof> kProofs{
      {"osFilesystemIsolation",
       "Landlock, seccomp",
       {"host_file", "host_chmod", "host_socket", "write_runtime"},
       {"own_file", "own_tmp", "read_runtime"},
       kFilesLost,
       "that a host file exists, its owner, size and times (stat), and links (readlink) can be "
       "seen; no /tmp, /proc and /dev/shm"},
      {"networkIsolation",
       "seccomp, Landlock",
       {"host_tcp", "host_abstract", "host_socket", "raw_socket", "packet_socket", "vsock_socket"},
       {"own_socketpair"},
       kNetworkLost,
       "there is no loopback and no socket but socketpair(2)"},
      {"processIsolation",
       "Landlock signal scope and ptrace check, seccomp",
       {"host_signal"},
       {"own_child"},
       kProcessesLost,
       "priority and affinity of the user's other processes can be changed (setpriority, "
       "sched_setaffinity)"},
      {"privileges",
       "no_new_privs, empty capability sets, seccomp",
       {"become_root", "new_user_namespace", "mount", "keyring", "io_uring"},
       {"own_child"},
       kPrivilegesLost}};
  return kProofs;
}

const std::vector<Proof>& ProofsFor(const Capabilities& capabilities) {
  return capabilities.filesystem_view == "filtered" ? FilteredProofs() : PrivateProofs();
}

std::string Shown(const Attempts& attempts, std::string_view name) {
  const auto found = attempts.find(name);
  std::string text(name);
  if (found == attempts.end()) return text + ": not tried";
  return text +
         (found->second == 0 ? ": worked" : std::string(": ") + ::strerrorname_np(found->second));
}

Control Judge(const Proof& proof, const Attempts& attempts) {
  Control control{.name = std::string(proof.name),
                  .works = true,
                  .mechanism = std::string(proof.mechanism),
                  .lost = std::string(proof.lost)};
  const auto note = [&](std::string_view name, bool must_work) {
    const auto found = attempts.find(name);
    if (found == attempts.end() || (found->second == 0) != must_work) control.works = false;
    control.detail += (control.detail.empty() ? "" : ", ") + Shown(attempts, name);
  };
  for (const auto name : proof.refused) note(name, false);
  for (const auto name : proof.allowed) note(name, true);
  if (!proof.note.empty()) control.detail += "; note: " + std::string(proof.note);
  return control;
}

/// Lines of "name errno".
Attempts Parse(std::string_view text) {
  Attempts attempts;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) continue;
    attempts[std::string(line.substr(0, space))] = std::atoi(line.data() + space + 1);
  }
  return attempts;
}

Result<ExecResult> RunProbe(SandboxState& sandbox, std::vector<std::string> arguments,
                            ExecOptions options = {}) {
  arguments.insert(arguments.begin(), {std::string("./") + kProbe, "probe"});
  options.timeout = kPatience;
  PALMSHED_TRY(auto execution,
               sandbox.Start({.args = std::move(arguments), .options = std::move(options)}));
  (void)execution->WaitSettled(std::nullopt);
  return *execution->result();
}

Result<Attempts> Attempt(SandboxState& sandbox) {
  PALMSHED_TRY(const HostTargets targets, HostTargets::Create());
  PALMSHED_TRY(
      const ExecResult result,
      RunProbe(sandbox, {"attempts", targets.file(), targets.socket(), targets.abstract_name(),
                         std::to_string(targets.port()), std::to_string(::getpid())}));
  if (!result.ok()) {
    return std::unexpected(Error{.code = ErrorCode::kUnknown,
                                 .message = "the probe ended with " +
                                            std::string(ToString(result.termination.cause)) + " " +
                                            result.err.bytes});
  }
  return Parse(result.out.bytes);
}

/// A program that prints, waits for its input and ends: its output must come before its end.
bool StreamsLive(SandboxState& sandbox) {
  auto execution = sandbox.Start({.args = {std::string("./") + kProbe, "probe", "echo"},
                                  .options = {.timeout = kPatience, .stdin_pipe = true}});
  if (!execution) return false;
  std::array<std::byte, 16> buffer{};
  const auto first = (*execution)->output(Stream::kStdout).Read(0, buffer, kPatience);
  const bool live = first && *first > 0 && (*execution)->status() == Status::kRunning;
  const bool closed = (*execution)->CloseStdin().has_value();
  (void)(*execution)->WaitSettled(std::nullopt);
  return live && closed && (*execution)->status() == Status::kCompleted;
}

/// A round trip through the file API, and a path that leaves the workspace.
bool FilesContained(const workspace::Workspace& files) {
  constexpr std::string_view kContent = "palmshed";
  const bool written =
      files.WriteFile("self-test", std::as_bytes(std::span(kContent)), 0644).has_value();
  const auto read = files.ReadFile("self-test");
  const auto outside = files.ReadFile("../../etc/passwd");
  return written && read && *read == kContent && !outside &&
         outside.error().code == ErrorCode::kFsError;
}

void NoteFailure(const Error& error, Capabilities& capabilities) {
  for (const Proof& proof : ProofsFor(capabilities)) {
    capabilities.controls.push_back({.name = std::string(proof.name),
                                     .mechanism = std::string(proof.mechanism),
                                     .detail = error.message,
                                     .lost = std::string(proof.lost),
                                     .remedy = error.remedy});
  }
  capabilities.os_filesystem_isolation = Support::kUnsupported;
}

bool Works(const Capabilities& capabilities, std::string_view name) {
  return std::ranges::any_of(capabilities.controls, [&](const Control& control) {
    return control.name == name && control.works;
  });
}

Result<void> TestIn(SandboxState& sandbox, std::span<const std::byte> probe,
                    Capabilities& capabilities) {
  PALMSHED_TRY(const auto files, sandbox.OpenWorkspace());
  PALMSHED_TRY_VOID(files.WriteFile(kProbe, probe, 0755));
  PALMSHED_TRY(const Attempts attempts, Attempt(sandbox));
  for (const Proof& proof : ProofsFor(capabilities)) {
    capabilities.controls.push_back(Judge(proof, attempts));
  }
  capabilities.filesystem = FilesContained(files);
  capabilities.streaming = StreamsLive(sandbox);
  return {};
}

}  // namespace

Result<Capabilities> SelfTest(backends::Backend& backend, const MakeSandbox& make) {
  PALMSHED_TRY(Capabilities capabilities, backend.Describe());
  auto sandbox = make({.backend = std::string(backend.name())});
  if (!sandbox) {
    NoteFailure(sandbox.error(), capabilities);
    return capabilities;
  }
  const auto tested = TestIn(**sandbox, backend.ProbeProgram(), capabilities);
  const auto destroyed = (*sandbox)->Destroy();
  if (!tested) {
    NoteFailure(tested.error(), capabilities);
    return capabilities;
  }
  if (!destroyed) return std::unexpected(destroyed.error());
  capabilities.network_isolation = Works(capabilities, "networkIsolation");
  capabilities.os_filesystem_isolation =
      Works(capabilities, "osFilesystemIsolation") ? Support::kSupported : Support::kUnsupported;
  return capabilities;
}

}  // namespace palmshed::run
