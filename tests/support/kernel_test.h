// What every test of the whole engine on the real kernel starts from.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/must.h"
#include "support/process.h"
#include "support/residue.h"
#include "support/temp_dir.h"

namespace palmshed::tests {

using literals::operator""_KiB;
using literals::operator""_MiB;

/// Owns an engine with workspaces in a directory of its own. The engine is made when first used, so
/// that a test can fork before. After the test nothing of it may be left: no process, mount, IPC
/// object, cgroup or directory.
class KernelTest : public ::testing::Test {
 protected:
  KernelTest();
  ~KernelTest() override;

  Engine& engine();
  void StopEngine() { engine_.reset(); }
  /// A sandbox with the probe in its workspace, as ./probe.
  Sandbox MakeSandbox(SandboxOptions options = {});
  const std::string& workspaces() const { return root_.path(); }

 private:
  std::vector<std::string> LeftBehind() const;

  const Residue before_;
  const TempDir root_;
  std::optional<Engine> engine_;
};

/// An engine with workspaces in `root`, for processes that the test forks.
Engine MakeEngine(const TempDir& root);
Sandbox MakeSandboxIn(Engine& engine, SandboxOptions options = {});
/// Copies the probe into the workspace under a name of the test's choice.
void AddProbe(Sandbox& sandbox, const std::string& name);

/// Runs to the end, or half a minute, whichever comes first.
ExecResult Exec(Sandbox& sandbox, std::vector<std::string> argv, ExecOptions options = {});
ExecResult ExecShell(Sandbox& sandbox, std::string command, ExecOptions options = {});
/// Standard output so far is at least `text`.
bool AwaitOutput(const Execution& execution, std::string_view text);

/// A counter that the result gives as evidence.
std::optional<std::int64_t> Evidence(const ExecResult& result, std::string_view name);

/// Longer than what is only there for the next execution is kept.
inline constexpr std::chrono::seconds kRest(30);

/// The probe's answers: what it tried worked, or was refused by the kernel.
inline constexpr int kReached = 0;
inline constexpr int kRefused = 1;

/// The probe reaches it outside any sandbox (the control) and is refused inside.
void ExpectOnlyOutside(Sandbox& sandbox, std::vector<std::string> probe_arguments);

MATCHER_P2(ExitedWith, code, out, "exited with " + std::to_string(code)) {
  return arg.termination.cause == Cause::kExited && arg.exit_code == code && arg.out.bytes == out;
}
MATCHER_P(EndedBy, cause, "ended by " + std::string(ToString(cause))) {
  return arg.termination.cause == cause;
}
MATCHER_P(FailsWith, code, "fails with " + std::string(ToString(code))) {
  return !arg.has_value() && arg.error().code == code;
}
MATCHER(Succeeds, "succeeds") {
  if (!arg.has_value()) *result_listener << arg.error().op << ": " << arg.error().message;
  return arg.has_value();
}

/// Whether this user can have a loop device, by the host alone: whatever the engine says of it.
bool HasLoopDevices();

/// Skips a test that this host cannot run, if kernel/allowed_skips.txt lists it for this kind of
/// user; else the test fails.
bool SkipAllowed();

}  // namespace palmshed::tests

#define PALMSHED_SKIP_UNLESS(condition, reason)                                            \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      if (!::palmshed::tests::SkipAllowed()) FAIL() << "may not be skipped: " << (reason); \
      GTEST_SKIP() << (reason);                                                            \
    }                                                                                      \
  } while (false)
