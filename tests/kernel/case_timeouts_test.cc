// Wall-clock limits: on time, with what was printed until then, and no value that wraps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/kernel_test.h"

namespace palmshed::tests {
namespace {

using std::chrono::steady_clock;

class Timeouts : public KernelTest {};

// C052
TEST_F(Timeouts, FireOnTime) {
  Sandbox sandbox = MakeSandbox();
  for (const int limit : {100, 400, 1000}) {
    const auto begin = steady_clock::now();
    const ExecResult run = Exec(sandbox, {"sleep", "60"}, {.timeout = Millis(limit)});
    const auto took = steady_clock::now() - begin;
    EXPECT_THAT(run, EndedBy(Cause::kWallTimeout));
    EXPECT_GE(took, Millis(limit));
    EXPECT_LT(took, Millis(limit + 700));
    EXPECT_GE(run.duration, Millis(limit));
    EXPECT_LT(run.duration, Millis(limit + 700));
  }
}

// Init has the uid of its workloads, and so has what bears them.
TEST_F(Timeouts, FireWhereAWorkloadSlowsItsInitDown) {
  for (ExecOptions options : {ExecOptions{}, ExecOptions{.memory = Bytes{256U << 20}}}) {
    options.timeout = Millis(500);
    Sandbox sandbox = MakeSandbox();
    const ExecResult run = Exec(sandbox, {"./probe", "slow-init"}, options);
    EXPECT_THAT(run, EndedBy(Cause::kWallTimeout));
    EXPECT_EQ(run.out.bytes, "slowed\n");
    EXPECT_LT(run.duration, Millis(500 + 1500));
    EXPECT_THAT(ExecShell(sandbox, "echo works"), ExitedWith(0, "works\n"));
  }
}

// C053
TEST_F(Timeouts, ZeroAndHugeMeanPlentyOfTime) {
  Sandbox sandbox = MakeSandbox();
  for (const std::int64_t limit :
       {std::int64_t{0}, std::int64_t{2147483647}, std::int64_t{2147483648},
        std::int64_t{4294967296}, std::int64_t{9007199254740992}}) {
    const auto run = sandbox.RunShell("sleep 0.1; echo ok", {.timeout = Millis(limit)});
    ASSERT_THAT(run, Succeeds()) << limit;
    EXPECT_THAT(*run, ExitedWith(0, "ok\n")) << limit;
  }
}

// C053
TEST_F(Timeouts, WrongValuesAreRefused) {
  Sandbox sandbox = MakeSandbox();
  for (const std::int64_t limit :
       {std::int64_t{-1}, std::int64_t{9007199254740993}, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    const auto refused = sandbox.StartShell("true", {.timeout = Millis(limit)});
    ASSERT_THAT(refused, FailsWith(ErrorCode::kInvalidOptions)) << limit;
    EXPECT_EQ(refused.error().field, "timeout");
    EXPECT_THAT(engine().CreateSandbox({.timeout = Millis(limit)}),
                FailsWith(ErrorCode::kInvalidOptions));
  }
}

// C053
TEST_F(Timeouts, OneMillisecondFires) {
  Sandbox sandbox = MakeSandbox();
  const auto begin = steady_clock::now();
  EXPECT_THAT(Exec(sandbox, {"sleep", "60"}, {.timeout = Millis(1)}), EndedBy(Cause::kWallTimeout));
  EXPECT_LT(steady_clock::now() - begin, Millis(1000));
}

// C054
TEST_F(Timeouts, KeepWhatWasPrinted) {
  Sandbox sandbox = MakeSandbox();
  const ExecResult run =
      ExecShell(sandbox, "echo a; echo b >&2; sleep 60", {.timeout = Millis(2000)});
  EXPECT_THAT(run, EndedBy(Cause::kWallTimeout));
  EXPECT_EQ(run.out.bytes, "a\n");
  EXPECT_EQ(run.err.bytes, "b\n");
}

TEST_F(Timeouts, OfTheSandboxAreDefaultAndCeiling) {
  Sandbox sandbox = MakeSandbox({.timeout = Millis(400)});
  EXPECT_THAT(Must(sandbox.Run({"sleep", "60"})), EndedBy(Cause::kWallTimeout));
  EXPECT_EQ(Must(sandbox.Run({"sleep", "60"}, {.timeout = Millis(100)})).termination.limit, 100U);
  const auto raised = sandbox.Start({"true"}, {.timeout = Millis(401)});
  ASSERT_THAT(raised, FailsWith(ErrorCode::kInvalidOptions));
  EXPECT_EQ(raised.error().field, "timeout");
  EXPECT_THAT(raised.error().message, ::testing::HasSubstr("400"));
  EXPECT_THAT(raised.error().message, ::testing::HasSubstr("401"));
}

TEST_F(Timeouts, EachExecutionHasItsOwn) {
  Sandbox sandbox = MakeSandbox();
  const Execution shorter = Must(sandbox.Start({"sleep", "60"}, {.timeout = Millis(200)}));
  const Execution longer =
      Must(sandbox.StartShell("sleep 0.6; echo ok", {.timeout = Millis(9000)}));
  EXPECT_THAT(Must(shorter.Wait()), EndedBy(Cause::kWallTimeout));
  EXPECT_THAT(Must(longer.Wait()), ExitedWith(0, "ok\n"));
}

TEST_F(Timeouts, StopTokenCancels) {
  Sandbox sandbox = MakeSandbox();
  std::stop_source stop;
  const Execution running = Must(sandbox.Start({"./probe", "stay"}));
  ASSERT_TRUE(AwaitOutput(running, "ready"));
  const std::jthread stopper([&] { stop.request_stop(); });
  const ExecResult result = Must(running.Wait(stop.get_token()));
  EXPECT_EQ(result.status, Status::kCancelled);
  EXPECT_EQ(result.exit_code, -1);
  EXPECT_EQ(result.out.bytes, "ready\n");
}

}  // namespace
}  // namespace palmshed::tests
