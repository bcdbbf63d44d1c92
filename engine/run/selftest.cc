#include "run/selftest.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <expected>
#include <iterator>
#include <memory>
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
#include "plan/limits.h"
#include "run/execution.h"
#include "run/sandbox.h"
#include "run/selftest_host.h"
#include "run/selftest_limits.h"
#include "run/selftest_mounts.h"
#include "run/selftest_probe.h"

namespace palmshed::run {
namespace {

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

std::vector<Proof> PrivateProofs(bool scopes) {
  return {
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
       scopes ? "pid namespace, Landlock signal scope" : "pid namespace",
       {"host_signal"},
       {"own_child"},
       kProcessesLost,
       scopes ? "" : "executions of one sandbox can signal each other"},
      {"privileges",
       "no_new_privs, empty capability sets, seccomp",
       {"become_root", "new_user_namespace", "mount", "keyring", "io_uring"},
       {"own_child"},
       kPrivilegesLost}};
}

/// Without namespaces. What a sandbox does not have there is not tried: POSIX shared memory and a
/// loopback of its own.
std::vector<Proof> FilteredProofs() {
  return {
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
}

std::vector<Proof> ProofsFor(const backends::Description& described) {
  if (described.capabilities.filesystem_view == "filtered") return FilteredProofs();
  return PrivateProofs(described.offer.scopes);
}

std::string Shown(const Reports& attempts, std::string_view name) {
  const auto found = attempts.find(name);
  std::string text(name);
  if (found == attempts.end()) return text + ": not tried";
  return text +
         (found->second == 0 ? ": worked" : std::string(": ") + ::strerrorname_np(found->second));
}

Control Judge(const Proof& proof, const Reports& attempts) {
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

Result<Reports> Attempt(SandboxState& sandbox) {
  PALMSHED_TRY(const HostTargets targets, HostTargets::Create());
  PALMSHED_TRY(
      const auto execution,
      StartProbe(sandbox, {"attempts", targets.file(), targets.socket(), targets.abstract_name(),
                           std::to_string(targets.port()), std::to_string(::getpid())}));
  const ExecResult result = AwaitProbe(*execution);
  if (!result.ok()) {
    return std::unexpected(Error{.code = ErrorCode::kUnknown,
                                 .message = "the probe ended with " +
                                            std::string(ToString(result.termination.cause)) + " " +
                                            result.err.bytes});
  }
  return ParseReports(result.out.bytes);
}

/// A program that prints, waits for its input and ends: its output must come before its end.
bool StreamsLive(SandboxState& sandbox) {
  const auto execution = StartProbe(sandbox, {"echo"}, {.stdin_pipe = true});
  if (!execution) return false;
  const bool live = AwaitReport(**execution) && (*execution)->status() == Status::kRunning;
  const bool closed = (*execution)->CloseStdin().has_value();
  (void)(*execution)->WaitSettled(std::nullopt);
  return live && closed && (*execution)->status() == Status::kCompleted;
}

/// A program finds itself on a terminal, of the size that was asked for, which it can open by the
/// name that every terminal has.
Control TestTerminals(SandboxState& sandbox, const plan::Offer& offer) {
  Control control{
      .name = "tty", .mechanism = "devpts", .lost = "programs could not be given a terminal"};
  if (!offer.terminals) {
    control.detail = offer.terminals_missing.reason;
    control.remedy = offer.terminals_missing.remedy;
    return control;
  }
  constexpr TerminalSize kSize{.rows = 7, .columns = 77};
  const auto execution = StartProbe(sandbox, {"terminal"}, {.tty = kSize});
  if (!execution) {
    control.detail = execution.error().message;
    control.remedy = execution.error().remedy;
    return control;
  }
  const ExecResult result = AwaitProbe(**execution);
  const Reports reports = ParseReports(result.out.bytes);
  const Reports expected{{"stdin", 0},       {"stdout", 0},        {"stderr", 0},
                         {"dev_tty", 0},     {"rows", kSize.rows}, {"columns", kSize.columns},
                         {"end_of_input", 0}};
  control.works = result.ok() && reports == expected;
  for (const auto& [name, number] : reports) {
    control.detail += (control.detail.empty() ? "" : ", ") + name + ": " + std::to_string(number);
  }
  return control;
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

void NoteFailure(const Error& error, const backends::Description& described,
                 Capabilities& capabilities) {
  for (const Proof& proof : ProofsFor(described)) {
    capabilities.controls.push_back({.name = std::string(proof.name),
                                     .mechanism = std::string(proof.mechanism),
                                     .detail = error.message,
                                     .lost = std::string(proof.lost),
                                     .remedy = error.remedy});
  }
  NoteUntested(error, capabilities.controls);
  capabilities.os_filesystem_isolation = Support::kUnsupported;
}

/// What one sandbox showed.
struct Findings {
  std::vector<Control> controls{};
  bool filesystem = false;
  bool streaming = false;
};

Result<Findings> TestIn(SandboxState& sandbox, std::span<const std::byte> probe,
                        const backends::Description& described) {
  PALMSHED_TRY_VOID(InstallProbe(sandbox, probe));
  PALMSHED_TRY(const auto files, sandbox.OpenWorkspace());
  PALMSHED_TRY(const Reports attempts, Attempt(sandbox));
  Findings findings;
  for (const Proof& proof : ProofsFor(described)) {
    findings.controls.push_back(Judge(proof, attempts));
  }
  findings.filesystem = FilesContained(files);
  findings.streaming = StreamsLive(sandbox);
  findings.controls.push_back(TestTerminals(sandbox, described.offer));
  return findings;
}

enum class Limits : bool { kNot, kToo };

Result<Findings> TestAndDestroy(SandboxState& sandbox, std::span<const std::byte> probe,
                                const backends::Description& described, Limits limits) {
  auto findings = TestIn(sandbox, probe, described);
  if (findings && limits == Limits::kToo) {
    std::ranges::move(TestLimits(sandbox, described.offer), std::back_inserter(findings->controls));
  }
  const auto destroyed = sandbox.Destroy();
  if (findings && !destroyed) return std::unexpected(destroyed.error());
  return findings;
}

/// A control works when it does in both, if it was tested in both.
Findings Weaker(Findings a, const Findings& b) {
  for (std::size_t i = 0; i < a.controls.size(); ++i) {
    if (!b.controls[i].works) a.controls[i] = b.controls[i];
  }
  const auto more = b.controls.begin() + std::ssize(a.controls);
  a.controls.insert(a.controls.end(), more, b.controls.end());
  a.filesystem = a.filesystem && b.filesystem;
  a.streaming = a.streaming && b.streaming;
  return a;
}

/// Two sandboxes, since a backend may make the first of its kind in another way than the rest. To
/// limits, which are set up anew for each execution, that makes no difference.
Result<Findings> TestBoth(backends::Backend& backend, const MakeSandbox& make,
                          std::shared_ptr<SandboxState> first,
                          const backends::Description& described) {
  const auto probe = backend.ProbeProgram();
  const std::string name(backend.name());
  PALMSHED_TRY(Findings findings, TestAndDestroy(*first, probe, described, Limits::kNot));
  PALMSHED_TRY(const auto second, make({.backend = name}));
  PALMSHED_TRY(const Findings others, TestAndDestroy(*second, probe, described, Limits::kToo));
  findings = Weaker(std::move(findings), others);
  const MakeStorage make_storage = [&](Bytes quota, Storage storage) {
    return make({.backend = name, .disk_quota = quota, .storage = storage});
  };
  std::ranges::move(TestStorage(make_storage, described.offer, probe),
                    std::back_inserter(findings.controls));
  const MakeMounted make_mounted = [&](std::vector<Mount> mounts) {
    return make({.backend = name, .mounts = std::move(mounts)});
  };
  findings.controls.push_back(TestMounts(make_mounted, probe));
  return findings;
}

}  // namespace

Result<Capabilities> SelfTest(backends::Backend& backend, const MakeSandbox& make) {
  auto first = make({.backend = std::string(backend.name())});
  PALMSHED_TRY(backends::Description described, backend.Describe());
  described.offer = plan::WithLimits(std::move(described.offer));
  Capabilities capabilities = described.capabilities;
  const auto findings = first ? TestBoth(backend, make, *std::move(first), described)
                              : Result<Findings>(std::unexpected(std::move(first.error())));
  if (!findings) {
    NoteFailure(findings.error(), described, capabilities);
    return capabilities;
  }
  capabilities.controls.insert(capabilities.controls.end(), findings->controls.begin(),
                               findings->controls.end());
  capabilities.filesystem = findings->filesystem;
  capabilities.streaming = findings->streaming;
  capabilities.tty = Works(capabilities, "tty");
  capabilities.network_isolation = Works(capabilities, "networkIsolation");
  capabilities.os_filesystem_isolation =
      Works(capabilities, "osFilesystemIsolation") ? Support::kSupported : Support::kUnsupported;
  capabilities.mounts = Works(capabilities, "mounts");
  SetLimitFlags(described.offer, capabilities);
  return capabilities;
}

}  // namespace palmshed::run
