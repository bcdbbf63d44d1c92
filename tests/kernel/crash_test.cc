// Sudden deaths: of the host program, of the launcher, of a sandbox's init. Workloads never outlive
// them, and no death is reported as a success. G1 to G8 are the guarantees of crash recovery.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/eventually.h"
#include "support/filtered_rung.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/residue.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

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

// G2, G8, C019
TEST_F(Crash, KilledHostProgramTakesEverythingAlong) {
  const TempDir root;
  const std::string name = UniqueName();
  ChildHost host([&](ChildHost& self) { HostWorkloads(self, root, name); });
  ASSERT_EQ(host.Hear(), "ready");
  ASSERT_GE(FindProcesses(name).size(), 4U);
  host.Kill();
  ExpectGone(root, name);
}

// G2, C019: a fork of the host program holds copies of every socket and lock of the engine.
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

// The first sandbox of an engine is made without a launcher, the second with one.
void ExpectEndThoughForked() {
  const TempDir root;
  ChildHost host([&](ChildHost& self) {
    {
      Engine engine = MakeEngine(root);
      const Sandbox first = MakeSandboxIn(engine);
      const Sandbox second = MakeSandboxIn(engine);
      const pid_t fork = ::fork();
      if (fork == 0) ChildHost::StayForEver();
      self.Tell(std::to_string(fork));
    }
    self.Tell("ended");
  });
  const pid_t fork = std::stoi(host.Hear());
  EXPECT_EQ(host.Hear(), "ended");
  EXPECT_TRUE(Eventually([] { return Descendants().size() == 1; }, kSoon))
      << ::testing::PrintToString(Descendants());
  (void)::kill(fork, SIGKILL);
  EXPECT_TRUE(TreeOf(root.path()).empty()) << ::testing::PrintToString(TreeOf(root.path()));
}

TEST_F(Crash, EngineEndsAsUsualThoughTheHostProgramHasForked) { ExpectEndThoughForked(); }

TEST_F(Crash, EngineWithoutNamespacesEndsAsUsualThoughTheHostProgramHasForked) {
  PALMSHED_SKIP_UNLESS(HasLandlockScopes(), "Landlock has no scopes here (ABI 6)");
  OnFilteredRung(ExpectEndThoughForked);
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

// G1
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

/// A host program that is killed once it has a sandbox, in which something was detached.
/// The number of that process on this host.
pid_t CrashWithSomethingDetached(const TempDir& root, const std::string& name) {
  ChildHost host([&](ChildHost& self) {
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    AddProbe(sandbox, name);
    const ExecResult left = Exec(sandbox, {"./" + name, "daemon", "go"},
                                 {.descendants = palmshed::Descendants::kDetach});
    self.Tell(left.ok() ? "ready" : "failed");
    ChildHost::StayForEver();
  });
  EXPECT_EQ(host.Hear(), "ready");
  const std::vector<HostProcess> alive = FindProcesses(name);
  EXPECT_EQ(alive.size(), 1U);
  host.Kill();
  EXPECT_TRUE(Eventually([&] { return FindProcesses(name).empty(); }, kSoon));
  return alive.empty() ? -1 : alive.front().pid;
}

// G3, G8
TEST_F(Crash, WhatRanInTheBackgroundIsGoneAsWell) {
  const TempDir root;
  const std::string name = UniqueName();
  (void)CrashWithSomethingDetached(root, name);
  EXPECT_THAT(TreeOf(root.path()),
              ::testing::Not(IsEmpty()));  // Else there was nothing to collect.
  ExpectGone(root, name);
}

// G4, C020
TEST_F(Crash, SandboxesThatLiveAreNeverCollected) {
  const TempDir root;
  const TempDir signals;
  const std::string name = UniqueName();
  const std::string go = signals.path() + "/go";
  ChildHost living([&](ChildHost& self) {
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    AddProbe(sandbox, name);
    const Execution staying = Must(sandbox.Start({"./" + name, "stay"}));
    self.Tell(AwaitOutput(staying, "ready") ? "ready" : "failed");
    (void)Eventually([&] { return std::filesystem::exists(go); }, std::chrono::seconds(60));
    const bool well = staying.status() == Status::kRunning &&
                      ExecShell(sandbox, "ls").out.bytes == name + "\nprobe\n";
    self.Tell(well ? "well" : "harmed");
    ChildHost::StayForEver();
  });
  ASSERT_EQ(living.Hear(), "ready");
  for (int dead = 0; dead < 3; ++dead) (void)CrashWithSomethingDetached(root, UniqueName());
  for (int round = 0; round < 3; ++round) {
    Engine other = MakeEngine(root);
    Sandbox passing = MakeSandboxIn(other);
    EXPECT_THAT(ExecShell(passing, "echo passing"), ExitedWith(0, "passing\n"));
  }
  // What had died is gone, by whichever engine.
  EXPECT_TRUE(Eventually([&] {
    const auto left = TreeOf(root.path());
    return std::ranges::count_if(left, [](const auto& path) { return path.ends_with(".lock"); }) ==
           1;
  }));
  EXPECT_EQ(FindProcesses(name).size(), 1U);
  std::ofstream(go) << "go";
  EXPECT_EQ(living.Hear(), "well");
  living.Kill();
  ExpectGone(root, name);
}

/// A child of this process that has that number, and stays; -1: it cannot be had.
pid_t ForkWithNumber(pid_t number) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::ofstream("/proc/sys/kernel/ns_last_pid") << number - 1;
    const pid_t pid = ::fork();
    if (pid == 0) ChildHost::StayForEver();
    if (pid == number) return pid;
    (void)::kill(pid, SIGKILL);
    (void)::waitpid(pid, nullptr, 0);
  }
  return -1;
}

// G5, C020: whoever has the number of a dead process is not taken for it.
TEST_F(Crash, ProcessWithANumberThatWasUsedBeforeIsLeftAlone) {
  const TempDir root;
  const std::string name = UniqueName();
  const pid_t used = CrashWithSomethingDetached(root, name);
  ASSERT_TRUE(Eventually([] { return Descendants().empty(); }, kSoon));
  const pid_t unrelated = ForkWithNumber(used);
  PALMSHED_SKIP_UNLESS(unrelated > 0, "numbers of processes cannot be chosen on this host");
  Engine next = MakeEngine(root);
  {
    Sandbox sandbox = MakeSandboxIn(next);
  }
  EXPECT_TRUE(Eventually([&] { return TreeOf(root.path()).empty(); }));
  EXPECT_EQ(::waitpid(unrelated, nullptr, WNOHANG), 0);
  (void)::kill(unrelated, SIGKILL);
  (void)::waitpid(unrelated, nullptr, 0);
}

// G6: it is collected once, and nothing of it comes back.
TEST_F(Crash, WhatWasCollectedStaysGone) {
  const TempDir root;
  (void)CrashWithSomethingDetached(root, UniqueName());
  ASSERT_TRUE(Eventually([] { return Descendants().empty(); }, kSoon));
  const std::vector<std::string> left = TreeOf(root.path());
  for (const std::size_t expected : {1U, 0U, 0U}) {
    std::vector<std::string> reaped;
    {
      Engine next =
          Must(Engine::Create({.workspace_root = root.path(), .on_event = [&](const Event& event) {
                                 if (event.name == "backend.reap") reaped.push_back(event.sandbox);
                               }}));
      Sandbox sandbox = MakeSandboxIn(next);
      EXPECT_THAT(ExecShell(sandbox, "ls"), ExitedWith(0, "probe\n"));
    }
    EXPECT_EQ(reaped.size(), expected)
        << ::testing::PrintToString(reaped) << " of " << ::testing::PrintToString(left);
    EXPECT_THAT(TreeOf(root.path()), IsEmpty());
  }
}

// A name of ours that is none of ours: what cannot be collected is told each time, and the rest is.
TEST_F(Crash, WhatCannotBeCollectedIsTold) {
  const TempDir root;
  (void)CrashWithSomethingDetached(root, UniqueName());
  ASSERT_TRUE(Eventually([] { return Descendants().empty(); }, kSoon));
  const std::string stuck = "sbx_0123456789abcdef";
  const std::string dead = TreeOf(root.path()).front().substr(0, stuck.size());
  std::filesystem::create_directory(root.path() + "/" + stuck + ".lock");
  for (const bool first : {true, false}) {
    std::map<std::string, std::vector<std::pair<std::string, std::string>>> reaped;
    {
      Engine next =
          Must(Engine::Create({.workspace_root = root.path(), .on_event = [&](const Event& event) {
                                 if (event.name == "backend.reap") {
                                   reaped[event.sandbox] = event.fields;
                                 }
                               }}));
      Sandbox sandbox = MakeSandboxIn(next);
      Must(sandbox.Destroy());
    }
    EXPECT_THAT(reaped[stuck], ElementsAre(Pair("error", "EISDIR"), Pair("op", "openat")));
    EXPECT_EQ(reaped.contains(dead), first);
    EXPECT_THAT(reaped[dead], IsEmpty());
    EXPECT_THAT(TreeOf(root.path()), ElementsAre(stuck + ".lock"));
  }
}

// G7
TEST_F(Crash, RecoveryTakesNoPrivilege) {
  AsOrdinaryUser([] {
    const TempDir root;
    const std::string name = UniqueName();
    (void)CrashWithSomethingDetached(root, name);
    ExpectGone(root, name);
  });
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
