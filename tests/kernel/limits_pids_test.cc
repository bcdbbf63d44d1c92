// Limits on processes: bombs are bounded and leave nothing, and nobody counts another's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/eventually.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Clock = std::chrono::steady_clock;

class LimitsOfProcesses : public KernelTest {};

/// Processes and threads, once the limit is shown to hold.
void ExpectBounded(Sandbox& sandbox, const std::string& what) {
  const ExecResult few = Exec(sandbox, {"./probe", what, "20"});
  EXPECT_THAT(few, ExitedWith(0, "started 20\n"));
  const ExecResult many = Exec(sandbox, {"./probe", what, "100"});
  EXPECT_EQ(many.exit_code, kRefused);
  EXPECT_THAT(many, EndedBy(Cause::kExited));
  EXPECT_THAT(many.out.bytes, HasSubstr("EAGAIN"));
  ASSERT_LE(std::stoi(many.out.bytes.substr(std::string("started ").size())), 31);
}

// C073
TEST_F(LimitsOfProcesses, BombEndsWithItsTimeoutAndLeavesNothing) {
  const std::string name = UniqueName();
  for (const auto& [bomb, unit] :
       {std::pair("fork-bomb", "processes"), std::pair("thread-bomb", "threads")}) {
    Sandbox sandbox = MakeSandbox({.pids = 32});
    AddProbe(sandbox, name);
    ExpectBounded(sandbox, unit);
    if (HasFatalFailure()) return;
    const ExecResult result = Exec(sandbox, {"./" + name, bomb}, {.timeout = Millis(1000)});
    EXPECT_THAT(result, EndedBy(Cause::kWallTimeout)) << bomb;
    EXPECT_EQ(result.out.bytes, "ready\n");
    EXPECT_THAT(FindProcesses(name), IsEmpty());
    EXPECT_THAT(ExecShell(sandbox, "echo again"), ExitedWith(0, "again\n"));
    Execution second = Must(sandbox.Start({"./" + name, bomb}));
    ASSERT_TRUE(AwaitOutput(second, "ready"));
    const auto begin = Clock::now();
    Must(sandbox.Destroy());
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(3));
    EXPECT_THAT(FindProcesses(name), IsEmpty());
  }
}

// C047
TEST_F(LimitsOfProcesses, OrphansAreReapedAndGiveTheirNumberBack) {
  Sandbox sandbox = MakeSandbox({.pids = 32});
  EXPECT_THAT(ExecShell(sandbox, "for i in $(seq 300); do (sh -c 'true &'); done; echo ok"),
              ExitedWith(0, "ok\n"));
  EXPECT_THAT(ExecShell(sandbox, "trap '' CHLD; for i in $(seq 80); do true & wait; done; echo ok"),
              ExitedWith(0, "ok\n"));
  EXPECT_THAT(ExecShell(sandbox, "grep -l '^State:.Z' /proc/[0-9]*/status; echo none"),
              ExitedWith(0, "none\n"));
}

constexpr char kHoldTwentyFive[] =
    "for i in $(seq 25); do sleep 60 & done; echo held; read x; "
    "for i in 1 2 3 4 5; do sleep 60 & done; echo more";

/// Four sandboxes, each with nearly all the processes that it may have.
void ExpectNobodyStarves(Engine& engine) {
  std::vector<Sandbox> sandboxes;
  std::vector<Execution> holding;
  for (int i = 0; i < 4; ++i) {
    sandboxes.push_back(MakeSandboxIn(engine, {.pids = 32}));
    holding.push_back(Must(sandboxes.back().StartShell(kHoldTwentyFive, {.stdin_pipe = true})));
  }
  for (const Execution& execution : holding) ASSERT_TRUE(AwaitOutput(execution, "held"));
  for (Execution& execution : holding) {
    Must(execution.CloseStdin());
    const ExecResult result = Must(execution.Wait());
    EXPECT_THAT(result, ExitedWith(0, "held\nmore\n"));
    EXPECT_EQ(result.err.bytes, "");
  }
}

/// The engine's process has threads of the user's own, which count in nobody's limit.
class ManyThreads {
 public:
  ManyThreads() {
    for (int i = 0; i < 200; ++i) threads_.emplace_back([this] { over_.wait(false); });
  }
  ~ManyThreads() {
    over_ = true;
    over_.notify_all();
  }
  ManyThreads(const ManyThreads&) = delete;
  ManyThreads& operator=(const ManyThreads&) = delete;

 private:
  std::atomic<bool> over_ = false;
  std::vector<std::jthread> threads_{};
};

// C048
TEST_F(LimitsOfProcesses, SandboxesDoNotStarveEachOther) {
  const ManyThreads threads;
  ExpectNobodyStarves(engine());
}

// C048
TEST(LimitsOfProcessesOfAnOrdinaryUser, SandboxesDoNotStarveEachOther) {
  AsOrdinaryUser([] {
    const TempDir root;
    const ManyThreads threads;
    Engine engine = MakeEngine(root);
    ExpectNobodyStarves(engine);
  });
}

// C048: as many callers at once, each with a limit of its own to be held.
TEST_F(LimitsOfProcesses, TwoHundredCallersAtOnceAreServed) {
  std::vector<Sandbox> sandboxes;
  for (int i = 0; i < 4; ++i) sandboxes.push_back(MakeSandbox({.memory = 64_MiB, .pids = 400}));
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> callers;
    for (std::size_t i = 0; i < 200; ++i) {
      callers.emplace_back([&, i] {
        const std::string number = std::to_string(i);
        const auto run = sandboxes[i % 4].RunShell("sleep 0.2; echo " + number + " | cat");
        EXPECT_TRUE(run) << ::testing::PrintToString(run.error());
        right += run && run->ok() && run->out.bytes == number + "\n";
      });
    }
  }
  EXPECT_EQ(right, 200);
}

}  // namespace
}  // namespace palmshed::tests
