// Engines, sandboxes and handles in every order of coming and going.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/eventually.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::ContainsRegex;
using ::testing::IsEmpty;

class Lifecycle : public KernelTest {};

TEST_F(Lifecycle, IdsAndNamesAreWellFormed) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(std::string(sandbox.id()), ContainsRegex("^sbx_[0-9a-f]{8,}$"));
  EXPECT_EQ(sandbox.backend_name(), "native");
  const Execution execution = Must(sandbox.Start({"true"}));
  EXPECT_THAT(std::string(execution.id()), ContainsRegex("^exec_[0-9a-f]{8,}$"));
  EXPECT_EQ(execution.uri(), "sandbox://execution/" + std::string(execution.id()));
  EXPECT_EQ(Must(execution.Wait()).id, execution.id());
}

TEST_F(Lifecycle, DestroyIsIdempotentAndFinal) {
  Sandbox sandbox = MakeSandbox();
  Must(sandbox.Destroy());
  Must(sandbox.Destroy());
  EXPECT_THAT(sandbox.Start({"true"}), FailsWith(ErrorCode::kBackendLost));
  EXPECT_THAT(sandbox.ReadFile("probe"), FailsWith(ErrorCode::kBackendLost));
  EXPECT_THAT(TreeOf(workspaces()), IsEmpty());
}

TEST_F(Lifecycle, DroppedSandboxGoesWithoutWaiting) {
  std::optional<Execution> running;
  {
    Sandbox sandbox = MakeSandbox();
    running = Must(sandbox.Start({"./probe", "stay"}));
    ASSERT_TRUE(AwaitOutput(*running, "ready"));
  }
  const ExecResult result = Must(running->Wait());
  EXPECT_EQ(result.status, Status::kCancelled);
  EXPECT_EQ(result.out.bytes, "ready\n");
  EXPECT_TRUE(Eventually([this] { return TreeOf(workspaces()).empty(); }));
}

TEST_F(Lifecycle, EngineTakesLiveSandboxesWithIt) {
  Sandbox sandbox = MakeSandbox();
  const Execution running = Must(sandbox.Start({"./probe", "stay"}));
  ASSERT_TRUE(AwaitOutput(running, "ready"));
  StopEngine();
  EXPECT_THAT(TreeOf(workspaces()), IsEmpty());
  EXPECT_EQ(Must(running.Wait()).status, Status::kCancelled);
  EXPECT_EQ(running.out().bytes, "ready\n");
  EXPECT_THAT(sandbox.Start({"true"}), FailsWith(ErrorCode::kBackendLost));
  EXPECT_THAT(sandbox.ReadFile("probe"), FailsWith(ErrorCode::kBackendLost));
  EXPECT_THAT(sandbox.WriteFile("x", "x"), FailsWith(ErrorCode::kBackendLost));
  EXPECT_FALSE(sandbox.capabilities());
  (void)sandbox.Destroy();  // Whatever it answers, it comes back.
}

/// What a host program that waits for any child of its own would meet.
int ErrorOfWaitingForAnyChild() { return ::waitpid(-1, nullptr, WNOHANG | __WALL) < 0 ? errno : 0; }

TEST_F(Lifecycle, HostProgramHasNoChildOnceTheEngineIsGone) {
  InForkedProcess([] {
    ASSERT_EQ(ErrorOfWaitingForAnyChild(), ECHILD);
    const TempDir root;
    std::optional<Engine> engine = MakeEngine(root);
    std::vector<Sandbox> sandboxes;
    for (int i = 0; i < 3; ++i) sandboxes.push_back(MakeSandboxIn(*engine));
    Must(sandboxes[0].Destroy());
    EXPECT_THAT(ExecShell(sandboxes[1], "sleep 99 & echo x"), ExitedWith(0, "x\n"));
    const Execution running = Must(sandboxes[2].Start({"./probe", "stay"}));
    ASSERT_TRUE(AwaitOutput(running, "ready"));
    EXPECT_EQ(ErrorOfWaitingForAnyChild(), 0);  // The control.
    engine.reset();
    EXPECT_EQ(ErrorOfWaitingForAnyChild(), ECHILD);
  });
}

TEST_F(Lifecycle, HandlesOutliveEverything) {
  std::optional<Execution> finished;
  {
    Sandbox sandbox = MakeSandbox();
    finished = Must(sandbox.StartShell("echo kept; exit 4"));
    Must(finished->Wait());
  }
  StopEngine();
  EXPECT_THAT(Must(finished->Wait()), ExitedWith(4, "kept\n"));
  EXPECT_EQ(finished->exit_code(), 4);
  EXPECT_EQ(finished->status(), Status::kFailed);
  EXPECT_EQ(finished->logs(), "kept\n");
  EXPECT_THAT(finished->Signal(SIGTERM), FailsWith(ErrorCode::kConflict));
  Must(finished->Cancel());
}

TEST_F(Lifecycle, MovedSandboxStaysAlive) {
  std::vector<Sandbox> sandboxes;
  for (int i = 0; i < 4; ++i) sandboxes.push_back(MakeSandbox());
  Sandbox moved = std::move(sandboxes.front());
  sandboxes.clear();
  EXPECT_THAT(ExecShell(moved, "echo alive"), ExitedWith(0, "alive\n"));
}

TEST_F(Lifecycle, SeveralEnginesLiveSideBySide) {
  const TempDir first_root, second_root;
  std::optional<Engine> first = MakeEngine(first_root);
  Engine second = MakeEngine(second_root);
  Sandbox one = MakeSandboxIn(*first);
  Sandbox two = MakeSandboxIn(second);
  EXPECT_NE(one.id(), two.id());
  first.reset();
  EXPECT_THAT(ExecShell(two, "echo alive"), ExitedWith(0, "alive\n"));
}

// Another engine's collector must leave a live sandbox alone.
TEST_F(Lifecycle, EnginesMayShareADirectory) {
  Sandbox sandbox = MakeSandbox();
  Must(sandbox.WriteFile("mine", "x"));
  {
    Engine other = Must(Engine::Create({.workspace_root = workspaces()}));
    Sandbox neighbour = MakeSandboxIn(other);
    EXPECT_THAT(ExecShell(neighbour, "ls mine"), ::testing::Not(ExitedWith(0, "mine\n")));
  }
  EXPECT_EQ(Must(sandbox.ReadFile("mine")), "x");
  EXPECT_THAT(ExecShell(sandbox, "cat mine"), ExitedWith(0, "x"));
}

TEST_F(Lifecycle, ManyRoundsLeaveNothing) {
  for (int i = 0; i < 60; ++i) {
    Sandbox sandbox = Must(engine().CreateSandbox());
    ASSERT_THAT(ExecShell(sandbox, "echo x > f; cat f"), ExitedWith(0, "x\n"));
    Must(sandbox.Destroy());
  }
  EXPECT_THAT(TreeOf(workspaces()), IsEmpty());
}

TEST_F(Lifecycle, ManyExecutionsInOneSandboxAreAllTheSame) {
  Sandbox sandbox = MakeSandbox();
  for (int i = 0; i < 500; ++i) {
    ASSERT_THAT(Exec(sandbox, {"/bin/echo", "x"}), ExitedWith(0, "x\n")) << i;
  }
  EXPECT_THAT(ExecShell(sandbox, "grep -l '^State:.Z' /proc/[0-9]*/status | wc -l"),
              ExitedWith(0, "0\n"));
}

TEST_F(Lifecycle, UnknownBackendAndWrongOptionsAreRefused) {
  EXPECT_THAT(engine().CreateSandbox({.backend = "no-such"}),
              FailsWith(ErrorCode::kInvalidBackend));
  EXPECT_THAT(engine().CreateSandbox({.image = "debian"}), FailsWith(ErrorCode::kInvalidOptions));
  EXPECT_THAT(engine().CreateSandbox({.cpu_quota = 0.01}), FailsWith(ErrorCode::kInvalidOptions));
  EXPECT_THAT(engine().CreateSandbox({.degraded = {"no-such-control"}}),
              FailsWith(ErrorCode::kInvalidOptions));
}

TEST_F(Lifecycle, ControlThatCannotBeEnforcedIsRefused) {
  Sandbox sandbox = MakeSandbox();
  const auto memory = sandbox.Start({"true"}, {.memory = 64_MiB});
  if (memory) {
    // Then it is enforced.
    EXPECT_EQ(Must(memory->Wait()).error_code(), "");
    EXPECT_TRUE(Must(sandbox.capabilities()).memory_limits);
  } else {
    EXPECT_EQ(memory.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(memory.error().remedy, "");
  }
}

TEST_F(Lifecycle, EventsTellTheStory) {
  std::vector<std::string> names;
  {
    const TempDir root;
    Engine observed =
        Must(Engine::Create({.workspace_root = root.path(), .on_event = [&](const Event& event) {
                               names.push_back(event.name);
                             }}));
    Sandbox sandbox = MakeSandboxIn(observed);
    (void)ExecShell(sandbox, "echo secret-command");
    (void)ExecShell(sandbox, "sleep 9", {.timeout = Millis(50)});
    Must(sandbox.Destroy());
  }
  EXPECT_THAT(names, ::testing::IsSupersetOf(
                         {"exec.start", "exec.end", "resource.enforced", "backend.destroy"}));
}

TEST_F(Lifecycle, CapabilitiesAreWhatTheTestsHereSee) {
  Sandbox sandbox = MakeSandbox();
  const Capabilities capabilities = Must(engine().GetCapabilities("native", true));
  EXPECT_TRUE(capabilities.filesystem);
  EXPECT_TRUE(capabilities.network_isolation);
  EXPECT_TRUE(capabilities.streaming);
  EXPECT_FALSE(capabilities.remote_execution);
  EXPECT_EQ(capabilities.os_filesystem_isolation, Support::kSupported);
  EXPECT_EQ(capabilities.filesystem_view, "private");
  EXPECT_EQ(capabilities.crash_kill, "kernel");
}

}  // namespace
}  // namespace palmshed::tests
