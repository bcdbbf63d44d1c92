// What becomes of the processes that a command leaves running, as ExecOptions::descendants has it.
// What is killed is in case_process_tree_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/eventually.h"
#include "support/kernel_test.h"
#include "support/process.h"

namespace palmshed::tests {
namespace {

using std::chrono::seconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class DescendantsTest : public KernelTest {
 protected:
  /// With the probe under a name that can be looked for on the host.
  Sandbox MakeNamed(SandboxOptions options = {}) {
    Sandbox sandbox = MakeSandbox(std::move(options));
    AddProbe(sandbox, name_);
    return sandbox;
  }
  const std::string& name() const { return name_; }
  std::string probe() const { return "./" + name_; }
  std::size_t alive() const { return FindProcesses(name_).size(); }
  /// What has run for a while may have to wait long for a processor that others want.
  bool AllGone() const {
    return Eventually([this] { return alive() == 0; }, seconds(60));
  }

 private:
  const std::string name_ = UniqueName();
};

using Fate = palmshed::Descendants;

ExecOptions With(Fate fate) { return {.descendants = fate}; }

/// The output from `cursor` on contains `text`, within ten seconds.
bool ReadsLater(const Execution& execution, std::uint64_t cursor, std::string_view text) {
  std::string seen;
  const auto deadline = std::chrono::steady_clock::now() + seconds(10);
  while (std::chrono::steady_clock::now() < deadline) {
    std::array<std::byte, 256> buffer{};
    const auto size = execution.Read(Stream::kStdout, cursor, buffer, Millis(1000));
    if (!size) continue;
    if (*size == 0) return false;
    cursor += *size;
    seen.append(reinterpret_cast<const char*>(buffer.data()), *size);
    if (seen.find(text) != seen.npos) return true;
  }
  return false;
}

// ---- wait

TEST_F(DescendantsTest, WaitingTakesAsLongAsTheLastOfThem) {
  Sandbox sandbox = MakeSandbox();
  for (const std::string late :
       {"(sleep 0.4; echo late) &", "(setsid sh -c 'sleep 0.4; echo late' &)",
        "( ( (sleep 0.4; echo late) & ) & )"}) {
    const std::string command = late + "\necho first; exit 3";
    const ExecResult waited = ExecShell(sandbox, command, With(Fate::kWait));
    EXPECT_THAT(waited, ExitedWith(3, "first\nlate\n")) << late;
    EXPECT_GE(waited.duration, Millis(400)) << late;
    // The control.
    EXPECT_THAT(ExecShell(sandbox, command), ExitedWith(3, "first\n")) << late;
  }
}

TEST_F(DescendantsTest, WaitingForNobodyEndsAtOnce) {
  Sandbox sandbox = MakeSandbox();
  for (int i = 0; i < 20; ++i) {
    const ExecResult run = Exec(sandbox, {"sh", "-c", "exit 0"}, With(Fate::kWait));
    EXPECT_THAT(run, ExitedWith(0, ""));
    EXPECT_LT(run.duration, seconds(2));
  }
}

TEST_F(DescendantsTest, WaitingCountsWhatTheyUse) {
  Sandbox sandbox = MakeSandbox();
  const ExecResult run =
      ExecShell(sandbox, "(./probe burn 200 &) >/dev/null; exit 0", With(Fate::kWait));
  EXPECT_THAT(run, ExitedWith(0, ""));
  EXPECT_GE(run.cpu_time.value_or(Millis(0)), Millis(150));
}

TEST_F(DescendantsTest, TimeoutEndsWhatIsWaitedFor) {
  Sandbox sandbox = MakeNamed();
  ExecOptions options = With(Fate::kWait);
  options.timeout = Millis(600);
  const ExecResult run = ExecShell(sandbox, probe() + " stay & echo first", std::move(options));
  EXPECT_THAT(run, EndedBy(Cause::kWallTimeout));
  EXPECT_THAT(run.out.bytes, StartsWith("first\n"));
  EXPECT_EQ(alive(), 0U);
}

TEST_F(DescendantsTest, CancellingEndsWhatIsWaitedFor) {
  Sandbox sandbox = MakeNamed();
  Execution execution = Must(
      sandbox.StartShell("trap '' TERM; " + probe() + " stay & echo first", With(Fate::kWait)));
  ASSERT_TRUE(AwaitOutput(execution, "first"));
  ASSERT_THAT(execution.Cancel(), Succeeds());
  EXPECT_THAT(Must(execution.Wait()), EndedBy(Cause::kCancelled));
  EXPECT_EQ(alive(), 0U);
}

TEST_F(DescendantsTest, SignalToAMainProcessThatHasEndedReachesNobody) {
  Sandbox sandbox = MakeNamed();
  Execution execution = Must(
      sandbox.StartShell("echo $$ > main; " + probe() + " stay & echo first", With(Fate::kWait)));
  ASSERT_TRUE(Eventually(
      [&] { return ExecShell(sandbox, "test -s main && ! kill -0 $(cat main)").exit_code == 0; }));
  ASSERT_TRUE(Eventually([&] { return alive() == 1; }));
  EXPECT_THAT(execution.Signal(SIGTERM), Succeeds());
  // Init has seen it when it has answered this.
  EXPECT_THAT(ExecShell(sandbox, "echo beside"), ExitedWith(0, "beside\n"));
  EXPECT_EQ(alive(), 1U);
  EXPECT_EQ(execution.status(), Status::kRunning);
  ASSERT_THAT(sandbox.Destroy(), Succeeds());
  EXPECT_THAT(Must(execution.Wait()), EndedBy(Cause::kCancelled));
}

// ---- detach

TEST_F(DescendantsTest, WhatIsDetachedRunsUntilTheSandboxIsDestroyed) {
  Sandbox sandbox = MakeNamed();
  const ExecResult run =
      ExecShell(sandbox, probe() + " stay & echo started; exit 4", With(Fate::kDetach));
  EXPECT_THAT(run.termination.cause, Cause::kExited);
  EXPECT_EQ(run.exit_code, 4);
  EXPECT_THAT(run.out.bytes, HasSubstr("started\n"));
  ASSERT_TRUE(Eventually([&] { return alive() == 1; }));
  // Other executions come and go beside it.
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(ExecShell(sandbox, "sleep 30 & echo beside"), ExitedWith(0, "beside\n"));
  }
  EXPECT_EQ(alive(), 1U);
  ASSERT_THAT(sandbox.Destroy(), Succeeds());
  EXPECT_EQ(alive(), 0U);
}

TEST_F(DescendantsTest, SeveralAreDetachedSideBySide) {
  Sandbox sandbox = MakeNamed();
  for (int i = 0; i < 3; ++i) {
    const ExecResult run = Exec(sandbox, {probe(), "daemon", "go"}, With(Fate::kDetach));
    EXPECT_THAT(run, ExitedWith(0, "ready\n"));
  }
  EXPECT_EQ(alive(), 3U);
  EXPECT_THAT(ExecShell(sandbox, "echo beside"), ExitedWith(0, "beside\n"));
  ASSERT_THAT(sandbox.Destroy(), Succeeds());
  EXPECT_EQ(alive(), 0U);
}

TEST_F(DescendantsTest, OutputOfWhatIsDetachedIsReadAndTheResultStays) {
  Sandbox sandbox = MakeSandbox();
  Execution execution =
      Must(sandbox.StartShell("(while [ ! -e go ]; do sleep 0.02; done; echo later; while :; do "
                              "sleep 1; done) & echo first",
                              With(Fate::kDetach)));
  const ExecResult run = Must(execution.Wait());
  EXPECT_THAT(run, ExitedWith(0, "first\n"));
  ASSERT_THAT(sandbox.WriteFile("go", std::string_view()), Succeeds());
  EXPECT_TRUE(ReadsLater(execution, run.out.total, "later\n"));
  EXPECT_THAT(execution.result().value(), ExitedWith(0, "first\n"));
  EXPECT_EQ(execution.result()->out.total, run.out.total);
  ASSERT_THAT(sandbox.Destroy(), Succeeds());
  std::array<std::byte, 16> none{};
  EXPECT_EQ(Must(execution.Read(Stream::kStdout, execution.out().total, none)), 0U);
}

// A pipe that nobody reads would stop it.
TEST_F(DescendantsTest, WhatIsDetachedMayPrintAsMuchAsItLikes) {
  std::atomic<std::uint64_t> heard = 0;
  Sandbox sandbox = MakeSandbox();
  ExecOptions options = With(Fate::kDetach);
  options.max_output = 64_KiB;
  options.on_output = [&](Stream, std::span<const std::byte> bytes) { heard += bytes.size(); };
  Execution execution =
      Must(sandbox.StartShell("(while [ ! -e go ]; do sleep 0.02; done; head -c 8388608 /dev/zero; "
                              "echo done; touch over) & "
                              "echo first",
                              std::move(options)));
  EXPECT_THAT(Must(execution.Wait()), ExitedWith(0, "first\n"));
  ASSERT_THAT(sandbox.WriteFile("go", std::string_view()), Succeeds());
  EXPECT_TRUE(Eventually([&] { return sandbox.ReadFile("over").has_value(); }));
  EXPECT_TRUE(Eventually([&] { return execution.out().total == 6 + 8388608 + 5; }));
  EXPECT_THAT(execution.out().bytes, EndsWith("done\n"));
  EXPECT_LE(execution.out().bytes.size(), std::size_t{64} << 10);
  EXPECT_EQ(heard, 6U);
}

TEST_F(DescendantsTest, TimeoutIsNoLongerOfConcernToWhatIsDetached) {
  Sandbox sandbox = MakeNamed();
  ExecOptions options = With(Fate::kDetach);
  options.timeout = Millis(1000);
  EXPECT_THAT(ExecShell(sandbox, probe() + " stay >/dev/null & exit 0", options),
              ExitedWith(0, ""));
  // The control: before its end, it is. By then the first one's has passed too.
  EXPECT_THAT(ExecShell(sandbox, probe() + " stay & sleep 30", options),
              EndedBy(Cause::kWallTimeout));
  EXPECT_EQ(alive(), 1U);
}

TEST_F(DescendantsTest, CancelledExecutionsDetachNothing) {
  Sandbox sandbox = MakeNamed();
  Execution execution = Must(sandbox.StartShell(
      "(trap '' TERM; exec " + probe() + " stay) & echo first; sleep 30", With(Fate::kDetach)));
  ASSERT_TRUE(AwaitOutput(execution, "first"));
  ASSERT_TRUE(Eventually([&] { return alive() == 1; }));
  ASSERT_THAT(execution.Cancel(), Succeeds());
  EXPECT_THAT(Must(execution.Wait()), EndedBy(Cause::kCancelled));
  EXPECT_EQ(alive(), 0U);
}

TEST_F(DescendantsTest, NothingLeftMeansAnEndAsAnyOther) {
  Sandbox sandbox = MakeSandbox();
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(Exec(sandbox, {"sh", "-c", "echo over"}, With(Fate::kDetach)),
                ExitedWith(0, "over\n"));
  }
}

TEST_F(DescendantsTest, WhatIsDetachedDiesWithItsEngine) {
  Sandbox sandbox = MakeNamed();
  EXPECT_EQ(ExecShell(sandbox, probe() + " stay & exit 0", With(Fate::kDetach)).exit_code, 0);
  ASSERT_TRUE(Eventually([&] { return alive() == 1; }));
  StopEngine();
  EXPECT_TRUE(AllGone());
}

// ---- detached, within limits

class DetachedLimitsTest : public DescendantsTest {
 protected:
  DetachedLimitsTest() { capabilities_ = Must(engine().GetCapabilities()); }
  const Capabilities& capabilities() const { return capabilities_; }

 private:
  Capabilities capabilities_{};
};

TEST_F(DetachedLimitsTest, CpuTimeBudgetEndsWhatIsDetachedWithAnEvent) {
  PALMSHED_SKIP_UNLESS(capabilities().cpu_limits, "no CPU time budgets on this host");
  const TempDir root;
  std::mutex mu;
  std::vector<Event> events;
  Engine observed =
      Must(Engine::Create({.workspace_root = root.path(), .on_event = [&](const Event& event) {
                             const std::lock_guard lock(mu);
                             events.push_back(event);
                           }}));
  Sandbox sandbox = MakeSandboxIn(observed);
  AddProbe(sandbox, name());
  ExecOptions options = With(Fate::kDetach);
  options.cpu_time_limit = Millis(200);
  const ExecResult run = ExecShell(sandbox, probe() + " burn 60000 >/dev/null & exit 0", options);
  EXPECT_THAT(run, ExitedWith(0, ""));
  EXPECT_TRUE(AllGone());
  const auto told = [&] {
    const std::lock_guard lock(mu);
    return std::ranges::any_of(events, [&](const Event& event) {
      return event.name == "resource.enforced" && event.execution == run.id;
    });
  };
  EXPECT_TRUE(Eventually(told));
  EXPECT_THAT(ExecShell(sandbox, "echo usable", options), ExitedWith(0, "usable\n"));
}

TEST_F(DetachedLimitsTest, MemoryLimitEndsWhatIsDetached) {
  PALMSHED_SKIP_UNLESS(capabilities().memory_limits, "no memory limits on this host");
  Sandbox sandbox = MakeNamed();
  ExecOptions options = With(Fate::kDetach);
  options.memory = 64_MiB;
  const std::string small = UniqueName();
  AddProbe(sandbox, small);
  const std::string wait = "(while [ ! -e go ]; do sleep 0.05; done; exec ./";
  for (const std::string& program :
       {name() + " touch-and-stay 256", small + " touch-and-stay 16"}) {
    EXPECT_THAT(ExecShell(sandbox, wait + program + ") >/dev/null & exit 0", options),
                ExitedWith(0, ""));
  }
  ASSERT_THAT(sandbox.WriteFile("go", std::string_view()), Succeeds());
  // The control: within its limit it stays.
  EXPECT_TRUE(Eventually([&] { return FindProcesses(small).size() == 1; }));
  EXPECT_TRUE(Eventually([&] {
    const ExecResult shells = ExecShell(sandbox, "cat /proc/[0-9]*/cmdline | tr '\\\\0' ' '");
    return alive() == 0 && shells.out.bytes.find("exec ./" + name()) == std::string::npos;
  }));
  EXPECT_THAT(ExecShell(sandbox, "echo usable", options), ExitedWith(0, "usable\n"));
}

}  // namespace
}  // namespace palmshed::tests
