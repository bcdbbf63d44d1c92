// Limits of executions: that they hold, for each execution its own, and what it is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <string>

#include "palmshed/palmshed.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Limits : public KernelTest {
 protected:
  bool KernelHoldsMemory() {
    return Must(engine().GetCapabilities()).memory_enforcement == "kernel";
  }
};

/// Long enough for a limit to be met.
const ExecOptions kSoon{.timeout = Millis(8000)};

bool HostSwaps() {
  std::ifstream swaps("/proc/swaps");
  std::string line;
  int lines = 0;
  while (std::getline(swaps, line)) ++lines;
  return lines > 1;
}

// ---- memory

// C012 (g), C026: in the main process, in a child that the parent hides, and again and again.
TEST_F(Limits, MemoryOfAnyProcessIsTheCause) {
  Sandbox sandbox = MakeSandbox({.memory = 64_MiB});
  EXPECT_THAT(Exec(sandbox, {"./probe", "touch", "40"}), ExitedWith(0, "OK\n"));
  const ExecResult alone = Exec(sandbox, {"./probe", "touch-and-stay", "400"}, kSoon);
  EXPECT_THAT(alone, EndedBy(Cause::kMemory));
  EXPECT_EQ(alone.error_code(), "ERR_OOM_EXCEEDED");
  EXPECT_EQ(alone.exit_code, -1);
  EXPECT_FALSE(alone.termination.signal);
  EXPECT_EQ(alone.termination.limit, Count(64_MiB));
  EXPECT_THAT(ExecShell(sandbox, "./probe touch-and-stay 400; echo rc=$?; exit 0", kSoon),
              EndedBy(Cause::kMemory));
  EXPECT_THAT(
      ExecShell(sandbox, "for i in 1 2 3; do ./probe touch-and-stay 400 || true; done", kSoon),
      EndedBy(Cause::kMemory));
  EXPECT_THAT(ExecShell(sandbox, "kill -9 $$; sleep 9"), EndedBy(Cause::kSignaled));
}

// C012: the host's word for it, not the exit code's.
TEST_F(Limits, ExecutionThatIsRefusedForWantOfMemoryHasThatCause) {
  PALMSHED_SKIP_UNLESS(KernelHoldsMemory(), "memory is sampled here");
  Sandbox sandbox = MakeSandbox();
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(Exec(sandbox, {"true"}, {.memory = 8_MiB}), ExitedWith(0, ""));
    // A little of the last one may still be charged to its group.
    const ExecResult refused = Exec(sandbox, {"true"}, {.memory = 16_KiB});
    EXPECT_THAT(refused, EndedBy(Cause::kMemory));
    EXPECT_EQ(refused.error_code(), "ERR_OOM_EXCEEDED");
  }
  EXPECT_THAT(Exec(sandbox, {"./no-such-program"}, {.memory = 8_MiB}),
              EndedBy(Cause::kStartupFailed));
  EXPECT_THAT(ExecShell(sandbox, "echo again"), ExitedWith(0, "again\n"));
}

TEST_F(Limits, ProgramRightBelowItsMemoryLimitPassesEachTime) {
  PALMSHED_SKIP_UNLESS(KernelHoldsMemory(), "memory is sampled here");
  Sandbox sandbox = MakeSandbox({.memory = 32_MiB});
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(Exec(sandbox, {"./probe", "touch", "31"}), ExitedWith(0, "OK\n"));
  }
  EXPECT_THAT(Exec(sandbox, {"./probe", "touch", "32"}), EndedBy(Cause::kMemory));
}

// C090
TEST_F(Limits, SwapIsNoWayAroundTheMemoryLimit) {
  PALMSHED_SKIP_UNLESS(HostSwaps(), "this host has no swap: see /proc/swaps");
  Sandbox sandbox = MakeSandbox({.memory = 64_MiB});
  EXPECT_THAT(Exec(sandbox, {"./probe", "touch-and-stay", "400"}), EndedBy(Cause::kMemory));
}

// C042: only what is resident counts.
class RuntimesWithinMemory : public KernelTest,
                             public ::testing::WithParamInterface<std::vector<std::string>> {};

TEST_P(RuntimesWithinMemory, Start) {
  PALMSHED_SKIP_UNLESS(OnPath(GetParam().front()), "not installed on this host");
  Sandbox sandbox = MakeSandbox({.memory = 256_MiB});
  const ExecResult run = Exec(sandbox, GetParam());
  EXPECT_TRUE(run.ok()) << ::testing::PrintToString(run);
  EXPECT_GT(run.out.total + run.err.total, 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Limits, RuntimesWithinMemory,
    ::testing::Values(
        std::vector<std::string>{
            "python3", "-c",
            "import mmap;m=mmap.mmap(-1,8<<30,flags=mmap.MAP_PRIVATE|mmap.MAP_ANONYMOUS|0x4000);"
            "m[0]=1;print('ok')"},
        std::vector<std::string>{
            "node", "-e", "new WebAssembly.Memory({initial:1,maximum:10});console.log('ok')"},
        std::vector<std::string>{"go", "version"}, std::vector<std::string>{"java", "-version"}),
    [](const auto& test) { return test.param.front(); });

// ---- CPU time

// C005
TEST_F(Limits, CpuTimeOfAllProcessesAndThreadsCounts) {
  Sandbox sandbox = MakeSandbox();
  const ExecOptions budget{.cpu_time_limit = Millis(500)};
  EXPECT_THAT(ExecShell(sandbox, "for i in 1 2 3; do ./probe burn 50; done; echo all", budget),
              ExitedWith(0, "OK\nOK\nOK\nall\n"));
  const std::string one_after_another = "for i in $(seq 99); do ./probe burn 100; done; echo all";
  const std::string at_once = "for i in 1 2 3 4; do ./probe burn 3000 & done; wait; echo all";
  const std::string orphans = "(./probe burn 3000 &); (setsid ./probe burn 3000 &); sleep 60";
  for (const std::string& command : {one_after_another, at_once, orphans}) {
    const ExecResult result = ExecShell(sandbox, command, budget);
    EXPECT_THAT(result, EndedBy(Cause::kCpuTime)) << command;
    EXPECT_EQ(result.error_code(), "ERR_CPU_EXCEEDED");
    EXPECT_GE(result.termination.observed.value_or(0), 500U);
    EXPECT_THAT(result.out.bytes, Not(HasSubstr("all")));
  }
}

// C005: programs are not bound to the engine's processors.
TEST_F(Limits, CpuBudgetHoldsThoughTheEngineIsBoundToOneProcessor) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  int first = 0;
  while (!CPU_ISSET(first, &all)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  Sandbox sandbox = MakeSandbox();
  const ExecResult result =
      ExecShell(sandbox, "for i in 1 2 3 4; do ./probe burn 9000 & done; wait",
                {.cpu_time_limit = Millis(1500)});
  EXPECT_THAT(result, EndedBy(Cause::kCpuTime));
  // Half as much again would be the least that a look comes too late by, with two processors.
  EXPECT_LT(result.termination.observed.value_or(9999), 2000U);
}

// C089
TEST_F(Limits, SmallCpuBudgetHoldsThoughEverySignalIsIgnored) {
  Sandbox sandbox = MakeSandbox();
  const ExecOptions budget{.cpu_time_limit = Millis(300)};
  EXPECT_THAT(Exec(sandbox, {"./probe", "burn-in-stubborn-child", "100"}, budget),
              ExitedWith(0, "OK\n"));
  const ExecResult result = Exec(sandbox, {"./probe", "burn-in-stubborn-child", "3000"}, budget);
  EXPECT_THAT(result, EndedBy(Cause::kCpuTime));
  EXPECT_GE(result.termination.observed.value_or(0), 300U);
  EXPECT_LE(result.termination.observed.value_or(0), 500U);
}

// C105
TEST_F(Limits, WaitingCostsNoCpuTime) {
  Sandbox sandbox = MakeSandbox({.cpu_time_limit = Millis(200)});
  EXPECT_THAT(ExecShell(sandbox, "sleep 1; echo done"), ExitedWith(0, "done\n"));
}

// ---- each execution

// C082, C091, and a limit that the sandbox does not have.
TEST_F(Limits, EachExecutionHasItsOwnAndTheNextHasNone) {
  Sandbox sandbox = MakeSandbox();
  const auto touch = [&](const char* size, Bytes limit) {
    return Exec(sandbox, {"./probe", "touch-and-stay", size},
                {.timeout = Millis(3000), .memory = limit});
  };
  const auto processes = [&](const char* count, std::uint64_t limit) {
    return Exec(sandbox, {"./probe", "processes", count}, {.pids = limit});
  };
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(Exec(sandbox, {"true"}, {.memory = 64_MiB, .pids = 16}), ExitedWith(0, ""));
    EXPECT_THAT(Exec(sandbox, {"./probe", "touch", "200"}), ExitedWith(0, "OK\n"));
    EXPECT_THAT(Exec(sandbox, {"./probe", "touch", "200"}, {.memory = 512_MiB}),
                ExitedWith(0, "OK\n"));
    EXPECT_THAT(touch("200", 64_MiB), EndedBy(Cause::kMemory));
    EXPECT_THAT(Exec(sandbox, {"./probe", "processes", "100"}), ExitedWith(0, "started 100\n"));
    EXPECT_THAT(processes("100", 200), ExitedWith(0, "started 100\n"));
    // Groups take turns: each has had the lower limit before the higher one.
    for (int i = 0; i < 4; ++i) {
      EXPECT_THAT(processes("100", 16).out.bytes, HasSubstr("EAGAIN"));
    }
    for (int i = 0; i < 4; ++i) {
      EXPECT_THAT(processes("100", 200), ExitedWith(0, "started 100\n"));
    }
    EXPECT_THAT(Exec(sandbox, {"./probe", "burn", "200"}, {.cpu_time_limit = Millis(100)}),
                EndedBy(Cause::kCpuTime));
    EXPECT_THAT(Exec(sandbox, {"./probe", "burn", "200"}), ExitedWith(0, "OK\n"));
  }
}

TEST_F(Limits, OutputBeforeTheLimitIsKept) {
  Sandbox sandbox = MakeSandbox();
  std::string streamed;
  const ExecResult result = ExecShell(
      sandbox, "seq 100000; echo warned >&2; exec ./probe touch-and-stay 400 > /dev/null",
      {.memory = 64_MiB, .max_output = 1_KiB, .on_output = [&](Stream stream, auto bytes) {
         if (stream == Stream::kStdout) {
           streamed.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
         }
       }});
  EXPECT_THAT(result, EndedBy(Cause::kMemory));
  EXPECT_EQ(result.out.total, 588'895U);  // Of seq 100000.
  EXPECT_TRUE(result.out.truncated);
  EXPECT_THAT(result.out.bytes, ::testing::EndsWith("99999\n100000\n"));
  EXPECT_EQ(streamed.size(), result.out.total);
  EXPECT_EQ(result.err.bytes, "warned\n");
  EXPECT_TRUE(result.cpu_time);
}

// ---- while a child waits for its program

TEST_F(Limits, SignalsAndCancelReachAnExecutionOfWhateverAge) {
  Sandbox sandbox = MakeSandbox({.memory = 64_MiB, .pids = 16});
  for (int round = 0; round < 50; ++round) {
    Execution cancelled = Must(sandbox.StartShell("sleep 60"));
    Execution killed = Must(sandbox.StartShell("sleep 60"));
    Must(killed.Signal(SIGKILL));
    Must(cancelled.Cancel());
    EXPECT_THAT(Must(cancelled.Wait()), EndedBy(Cause::kCancelled));
    const ExecResult result = Must(killed.Wait());
    EXPECT_THAT(result, EndedBy(Cause::kSignaled));
    EXPECT_EQ(result.termination.signal, SIGKILL);
  }
  EXPECT_THAT(Exec(sandbox, {"./probe", "touch-and-stay", "400"}), EndedBy(Cause::kMemory));
}

TEST_F(Limits, ChildThatWaitsIsNobodysExecution) {
  Sandbox sandbox = MakeSandbox({.memory = 64_MiB, .pids = 16});
  EXPECT_THAT(ExecShell(sandbox, "echo up"), ExitedWith(0, "up\n"));
  Execution running = Must(sandbox.Start({"./probe", "stay"}));
  ASSERT_TRUE(AwaitOutput(running, "ready"));
  // It cannot be ended from inside either.
  EXPECT_THAT(Exec(sandbox, {"./probe", "signal-all", "9"}).status, Status::kCompleted);
  EXPECT_EQ(running.status(), Status::kRunning);
  EXPECT_THAT(ExecShell(sandbox, "echo still"), ExitedWith(0, "still\n"));
  Must(running.Cancel());
}

}  // namespace
}  // namespace palmshed::tests
