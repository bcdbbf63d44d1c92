// Sudden deaths: of the host program, of the launcher, of a sandbox's init. Workloads never outlive
// them, and no death is reported as a success.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/eventually.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/residue.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::IsEmpty;

class Crash : public KernelTest {};

constexpr std::chrono::seconds kSoon{2};

/// A host program with three kinds of workload running.
void HostWorkloads(const ChildHost& host, const TempDir& root, const std::string& name) {
  Engine engine = MakeEngine(root);
  Sandbox sandbox = MakeSandboxIn(engine);
  AddProbe(sandbox, name);
  const Execution staying = Must(sandbox.Start({"./" + name, "stay"}));
  const Execution stubborn = Must(sandbox.Start({"./" + name, "stubborn"}));
  const Execution escaped = Must(sandbox.Start({"./" + name, "daemon", "wait"}));
  const bool ready = AwaitOutput(staying, "ready") && AwaitOutput(stubborn, "ready") &&
                     AwaitOutput(escaped, "ready");
  host.Tell(ready ? "ready" : "failed");
  ChildHost::StayForEver();
}

/// Nothing runs any more, and another engine finds the directory and cleans it up.
void ExpectGone(const TempDir& root, const std::string& name) {
  EXPECT_TRUE(Eventually([&] { return FindProcesses(name).empty(); }, kSoon));
  EXPECT_TRUE(Eventually([] { return Descendants().empty(); }, kSoon))
      << ::testing::PrintToString(Descendants());
  Engine next = MakeEngine(root);
  Sandbox sandbox = MakeSandboxIn(next);
  EXPECT_THAT(ExecShell(sandbox, "echo healthy"), ExitedWith(0, "healthy\n"));
  Must(sandbox.Destroy());
  EXPECT_TRUE(Eventually([&] { return TreeOf(root.path()).empty(); }))
      << ::testing::PrintToString(TreeOf(root.path()));
}

// C019
TEST_F(Crash, KilledHostProgramTakesEverythingAlong) {
  const TempDir root;
  const std::string name = UniqueName();
  ChildHost host([&](ChildHost& self) { HostWorkloads(self, root, name); });
  ASSERT_EQ(host.Hear(), "ready");
  ASSERT_GE(FindProcesses(name).size(), 4U);
  host.Kill();
  ExpectGone(root, name);
}

// C019: a fork of the host program holds copies of every socket and lock of the engine.
TEST_F(Crash, KilledHostProgramTakesEverythingAlongThoughItHasForked) {
  const TempDir root;
  const std::string name = UniqueName();
  ChildHost host([&](ChildHost& self) {
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    AddProbe(sandbox, name);
    const Execution staying = Must(sandbox.Start({"./" + name, "stay"}));
    const bool ready = AwaitOutput(staying, "ready");
    const pid_t fork = ::fork();
    if (fork == 0) ChildHost::StayForEver();
    self.Tell(ready ? std::to_string(fork) : "failed");
    ChildHost::StayForEver();
  });
  const pid_t fork = std::stoi(host.Hear());
  ASSERT_EQ(FindProcesses(name).size(), 1U);
  host.Kill();
  EXPECT_TRUE(Eventually([&] { return FindProcesses(name).empty(); }, kSoon));
  EXPECT_TRUE(Eventually([] { return Descendants().size() == 1; }, kSoon))
      << ::testing::PrintToString(Descendants());
  (void)::kill(fork, SIGKILL);
  ExpectGone(root, name);
}

// C019
TEST_F(Crash, HostProgramKilledAtAnyMomentLeavesNothing) {
  for (int round = 0; round < 25; ++round) {
    const TempDir root;
    const std::string name = UniqueName();
    ChildHost host([&](ChildHost& self) {
      self.Tell("started");
      HostWorkloads(self, root, name);
    });
    ASSERT_EQ(host.Hear(), "started");
    std::this_thread::sleep_for(std::chrono::milliseconds(round));
    host.Kill();
    EXPECT_TRUE(Eventually([] { return Descendants().empty(); }, kSoon))
        << "round " << round << ::testing::PrintToString(Descendants());
    Engine next = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(next);
    Must(sandbox.Destroy());
    EXPECT_TRUE(Eventually([&] { return TreeOf(root.path()).empty(); }))
        << ::testing::PrintToString(TreeOf(root.path()));
  }
}

TEST_F(Crash, HostProgramEndingNormallyLeavesNothing) {
  const TempDir root;
  const std::string name = UniqueName();
  InForkedProcess([&] {
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    AddProbe(sandbox, name);
    const Execution running = Must(sandbox.Start({"./" + name, "daemon", "wait"}));
    EXPECT_TRUE(AwaitOutput(running, "ready"));
  });
  EXPECT_THAT(TreeOf(root.path()), IsEmpty());
  ExpectGone(root, name);
}

std::vector<pid_t> Helpers() {
  std::vector<pid_t> pids;
  for (const std::string& process : Descendants()) {
    if (process.find("palmshed") != process.npos) pids.push_back(std::stoi(process));
  }
  std::ranges::sort(pids);
  return pids;
}

/// The helper that appeared when the sandbox was made.
pid_t NewHelper(const std::vector<pid_t>& before) {
  for (const pid_t pid : Helpers()) {
    if (!std::ranges::binary_search(before, pid)) return pid;
  }
  return -1;
}

// C021: what exists without a daemon.
TEST_F(Crash, LostInitIsNeverASuccess) {
  (void)MakeSandbox();
  ASSERT_TRUE(Eventually([this] { return TreeOf(workspaces()).empty(); }));
  const std::vector<pid_t> before = Helpers();
  Sandbox sandbox = MakeSandbox();
  const pid_t init = NewHelper(before);
  ASSERT_GT(init, 0);
  const Execution running = Must(sandbox.StartShell("echo begun; sleep 60"));
  ASSERT_TRUE(AwaitOutput(running, "begun"));
  ASSERT_EQ(::kill(init, SIGKILL), 0);
  const ExecResult result = Must(running.Wait());
  EXPECT_EQ(result.status, Status::kFailed);
  EXPECT_EQ(result.exit_code, -1);
  EXPECT_THAT(result, EndedBy(Cause::kBackendLost));
  EXPECT_EQ(result.error_code(), "BACKEND_LOST");
  EXPECT_EQ(result.out.bytes, "begun\n");
  EXPECT_THAT(sandbox.Start({"true"}), FailsWith(ErrorCode::kBackendLost));
  EXPECT_THAT(sandbox.ReadFile("probe"), FailsWith(ErrorCode::kBackendLost));
  Must(sandbox.Destroy());
  Sandbox next = MakeSandbox();
  EXPECT_THAT(ExecShell(next, "echo healthy"), ExitedWith(0, "healthy\n"));
}

// C021
TEST_F(Crash, LostLauncherIsNeverASuccessAndIsReplaced) {
  Sandbox sandbox = MakeSandbox();
  const Execution running = Must(sandbox.Start({"./probe", "stay"}));
  ASSERT_TRUE(AwaitOutput(running, "ready"));
  for (const pid_t helper : Helpers()) (void)::kill(helper, SIGKILL);
  EXPECT_THAT(Must(running.Wait()), EndedBy(Cause::kBackendLost));
  EXPECT_THAT(sandbox.Start({"true"}), FailsWith(ErrorCode::kBackendLost));
  // The first request after it may still meet the dead one.
  EXPECT_TRUE(Eventually([this] {
    auto made = engine().CreateSandbox();
    return made && made->RunShell("echo healthy")->out.bytes == "healthy\n";
  }));
}

// A stopped init must hold up neither the engine nor its other sandboxes.
TEST_F(Crash, StoppedInitHoldsUpNobodyElse) {
  (void)MakeSandbox();
  ASSERT_TRUE(Eventually([this] { return TreeOf(workspaces()).empty(); }));
  const std::vector<pid_t> before = Helpers();
  Sandbox frozen = MakeSandbox();
  const pid_t init = NewHelper(before);
  ASSERT_GT(init, 0);
  const Execution running = Must(frozen.Start({"./probe", "stay"}, {.timeout = Millis(500)}));
  ASSERT_TRUE(AwaitOutput(running, "ready"));
  ASSERT_EQ(::kill(init, SIGSTOP), 0);
  Sandbox other = MakeSandbox();
  EXPECT_THAT(ExecShell(other, "echo alive"), ExitedWith(0, "alive\n"));
  Must(frozen.Destroy());
  EXPECT_NE(Must(running.Wait()).status, Status::kCompleted);
}

}  // namespace
}  // namespace palmshed::tests
