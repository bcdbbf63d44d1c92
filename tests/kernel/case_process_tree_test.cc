// What becomes of processes that a command leaves running, and of those that will not go.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/eventually.h"
#include "support/kernel_test.h"
#include "support/process.h"

namespace palmshed::tests {
namespace {

using std::chrono::steady_clock;

class ProcessTree : public KernelTest {
 protected:
  /// A sandbox whose probe has a name that can be looked for on the host.
  Sandbox MakeNamed() {
    Sandbox sandbox = MakeSandbox();
    AddProbe(sandbox, name_);
    return sandbox;
  }
  std::string probe() const { return "./" + name_; }
  std::size_t alive() const { return FindProcesses(name_).size(); }
  bool AllGone() const {
    return Eventually([this] { return alive() == 0; }, std::chrono::seconds(1));
  }

 private:
  const std::string name_ = UniqueName();
};

std::chrono::milliseconds Took(const std::function<void()>& body) {
  const auto begin = steady_clock::now();
  body();
  return std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - begin);
}

// C001
TEST_F(ProcessTree, BackgroundChildHoldingOutputDoesNotKeepTheCall) {
  Sandbox sandbox = MakeNamed();
  const std::string stay = probe() + " stay";
  for (const std::string command : {"sleep 30 & echo hi", "(setsid sleep 30 &); echo hi",
                                    "sleep 30 </dev/null >/dev/null & echo hi"}) {
    EXPECT_LT(Took([&] { EXPECT_THAT(ExecShell(sandbox, command), ExitedWith(0, "hi\n")); }),
              std::chrono::seconds(2))
        << command;
  }
  EXPECT_LT(
      Took([&] { EXPECT_EQ(ExecShell(sandbox, stay + " & " + stay + " & exit 3").exit_code, 3); }),
      std::chrono::seconds(2));
  EXPECT_TRUE(AllGone());
}

// C001
TEST_F(ProcessTree, ForkedPythonHoldingOutputDoesNotKeepTheCall) {
  PALMSHED_SKIP_UNLESS(OnPath("python3"), "no python3 on this host");
  Sandbox sandbox = MakeSandbox();
  const std::string command = "python3 -c 'import os,time; os.fork() or time.sleep(30)'; exit 3";
  EXPECT_LT(Took([&] { EXPECT_THAT(ExecShell(sandbox, command), ExitedWith(3, "")); }),
            std::chrono::seconds(5));
}

// C002 (a), (c)
TEST_F(ProcessTree, ProcessThatLeftTheSessionEndsWithTheExecution) {
  Sandbox sandbox = MakeNamed();
  const ExecResult run = Exec(sandbox, {probe(), "daemon", "go"});
  EXPECT_THAT(run, ExitedWith(0, "ready\n"));
  EXPECT_TRUE(AllGone());
  // The control: while its parent stays, it can be seen.
  Execution staying = Must(sandbox.Start({probe(), "daemon", "wait"}));
  ASSERT_TRUE(AwaitOutput(staying, "ready"));
  EXPECT_EQ(alive(), 2U);
  Must(staying.Signal(SIGKILL));
  EXPECT_THAT(Must(staying.Wait()), EndedBy(Cause::kSignaled));
  EXPECT_TRUE(AllGone());
}

// Asked to keep it, the engine keeps it until the sandbox is destroyed, or refuses to start.
TEST_F(ProcessTree, DetachedProcessLivesUntilTheSandboxIsDestroyed) {
  Sandbox sandbox = MakeNamed();
  const auto run = sandbox.Run({probe(), "daemon", "go"}, {.descendants = Descendants::kDetach});
  if (!run) {
    EXPECT_EQ(run.error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(run.error().field, "descendants");
    return;
  }
  EXPECT_THAT(*run, ExitedWith(0, "ready\n"));
  EXPECT_EQ(alive(), 1U);
  EXPECT_THAT(ExecShell(sandbox, "echo next"), ExitedWith(0, "next\n"));
  EXPECT_EQ(alive(), 1U);
  Must(sandbox.Destroy());
  EXPECT_EQ(alive(), 0U);
}

// C002 (b)
TEST_F(ProcessTree, ProcessThatLeftTheSessionEndsWithTheTimeout) {
  Sandbox sandbox = MakeNamed();
  const ExecResult run = Exec(sandbox, {probe(), "daemon", "wait"}, {.timeout = Millis(300)});
  EXPECT_THAT(run, EndedBy(Cause::kWallTimeout));
  EXPECT_EQ(run.out.bytes, "ready\n");
  EXPECT_TRUE(AllGone());
}

// C002
TEST_F(ProcessTree, DestroyReturnsWhenNothingRunsAnyMore) {
  Sandbox sandbox = MakeNamed();
  const Execution first = Must(sandbox.Start({probe(), "daemon", "wait"}));
  const Execution second = Must(sandbox.Start({probe(), "stubborn"}));
  ASSERT_TRUE(AwaitOutput(first, "ready") && AwaitOutput(second, "ready"));
  EXPECT_GE(alive(), 3U);
  Must(sandbox.Destroy());
  EXPECT_EQ(alive(), 0U);
  EXPECT_EQ(Must(first.Wait()).status, Status::kCancelled);
  EXPECT_EQ(Must(second.Wait()).status, Status::kCancelled);
}

// C008
TEST_F(ProcessTree, TimeoutEndsEveryDescendant) {
  Sandbox sandbox = MakeNamed();
  const std::string stay = probe() + " stay";
  for (const std::string& command :
       {stay, "sh -c '" + stay + "; true'; true",
        "mkfifo p; (while :; do echo c; sleep 1; done) > p & cat p & " + stay,
        "sh -c '" + stay + " & wait' & wait"}) {
    const auto took = Took([&] {
      const ExecResult run =
          ExecShell(sandbox, "echo before; " + command, {.timeout = Millis(500)});
      EXPECT_THAT(run, EndedBy(Cause::kWallTimeout)) << command;
      EXPECT_TRUE(run.out.bytes.starts_with("before\n")) << command;
      EXPECT_EQ(run.exit_code, -1);
    });
    EXPECT_GE(took, std::chrono::milliseconds(500));
    EXPECT_LT(took, std::chrono::milliseconds(2000)) << command;
    EXPECT_TRUE(AllGone()) << command;
  }
}

// C072
TEST_F(ProcessTree, StubbornProcessesEndWithTheTimeout) {
  Sandbox sandbox = MakeNamed();
  EXPECT_THAT(Exec(sandbox, {probe(), "stubborn"}, {.timeout = Millis(300)}),
              EndedBy(Cause::kWallTimeout));
  EXPECT_THAT(ExecShell(sandbox, "trap '' TERM INT HUP; while :; do sleep 1; done",
                        {.timeout = Millis(300)}),
              EndedBy(Cause::kWallTimeout));
  EXPECT_TRUE(AllGone());
}

// C072
TEST_F(ProcessTree, CancelEndsStubbornProcessesAfterTheGrace) {
  Sandbox sandbox = MakeNamed();
  Execution running = Must(sandbox.Start({probe(), "stubborn"}));
  ASSERT_TRUE(AwaitOutput(running, "ready"));
  const auto took = Took([&] {
    Must(running.Cancel());
    Must(running.Cancel());
    EXPECT_EQ(Must(running.Wait()).status, Status::kCancelled);
  });
  EXPECT_GE(took, std::chrono::milliseconds(900));
  EXPECT_LT(took, std::chrono::milliseconds(2500));
  EXPECT_TRUE(AllGone());
}

// C072
TEST_F(ProcessTree, HandledSignalIsDeliveredAndNothingElse) {
  Sandbox sandbox = MakeNamed();
  Execution running = Must(sandbox.Start({probe(), "say-signals"}));
  ASSERT_TRUE(AwaitOutput(running, "ready"));
  Must(running.Signal(SIGUSR1));
  EXPECT_TRUE(AwaitOutput(running, "usr1"));
  EXPECT_FALSE(running.WaitFor(Millis(200)));
  Must(running.Signal(SIGTERM));
  const ExecResult result = Must(running.Wait());
  EXPECT_THAT(result, EndedBy(Cause::kSignaled));
  EXPECT_EQ(result.termination.signal, SIGTERM);
  EXPECT_THAT(running.Signal(SIGTERM), FailsWith(ErrorCode::kConflict));
}

// C019: parent-death signals follow a thread, and the caller's may end at once.
TEST_F(ProcessTree, EndOfTheCallingThreadEndsNothing) {
  Sandbox sandbox = MakeNamed();
  std::vector<Execution> started;
  std::thread([&] { started.push_back(Must(sandbox.StartShell("sleep 0.5; echo done"))); }).join();
  EXPECT_THAT(Must(started.front().Wait()), ExitedWith(0, "done\n"));
}

TEST_F(ProcessTree, ThousandsOfOrphansAreReaped) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(ExecShell(sandbox, "for i in $(seq 500); do (sh -c 'true &'); done; echo ok"),
              ExitedWith(0, "ok\n"));
  EXPECT_THAT(ExecShell(sandbox, "grep -l '^State:.Z' /proc/[0-9]*/status | wc -l"),
              ExitedWith(0, "0\n"));
}

}  // namespace
}  // namespace palmshed::tests
