// Many threads, many executions, one engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/kernel_test.h"

namespace palmshed::tests {
namespace {

constexpr int kThreads = 16;

class Concurrency : public KernelTest {};

void InParallel(const std::function<void(int)>& body) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&body, i] { body(i); });
}

/// Output, error output, input and exit code are this execution's own.
bool IsItsOwn(Sandbox& sandbox, int thread, int round) {
  const std::string tag = std::to_string(thread) + "." + std::to_string(round);
  const ExecResult run = ExecShell(sandbox, "cat; echo " + tag + " >&2; exit $T",
                                   {.env = {{"T", std::to_string(thread)}}, .stdin_bytes = tag});
  const bool own = run.out.bytes == tag && run.err.bytes == tag + "\n" && run.exit_code == thread;
  EXPECT_TRUE(own) << ::testing::PrintToString(run);
  return own;
}

TEST_F(Concurrency, ManyThreadsShareOneSandbox) {
  constexpr int kRounds = 25;
  Sandbox sandbox = MakeSandbox();
  std::atomic<int> right = 0;
  InParallel([&](int thread) {
    for (int round = 0; round < kRounds; ++round) right += IsItsOwn(sandbox, thread, round);
  });
  EXPECT_EQ(right, kThreads * kRounds);
}

TEST_F(Concurrency, ManyThreadsMakeSandboxesOfTheirOwn) {
  constexpr int kRounds = 6;
  Engine& shared = engine();
  std::atomic<int> right = 0;
  InParallel([&](int thread) {
    for (int round = 0; round < kRounds; ++round) {
      Sandbox sandbox = Must(shared.CreateSandbox());
      right += IsItsOwn(sandbox, thread, round);
      if (round % 2 == 0) Must(sandbox.Destroy());
    }
  });
  EXPECT_EQ(right, kThreads * kRounds);
}

TEST_F(Concurrency, ManyExecutionsRunAtOnce) {
  Sandbox sandbox = MakeSandbox();
  std::vector<Execution> running;
  for (int i = 0; i < 100; ++i) {
    running.push_back(Must(sandbox.StartShell("read x; echo $x", {.stdin_pipe = true})));
  }
  for (std::size_t i = 0; i < running.size(); ++i) {
    EXPECT_EQ(running[i].status(), Status::kRunning);
    const std::string line = std::to_string(i) + "\n";
    Must(running[i].Write(std::as_bytes(std::span(line))));
  }
  for (std::size_t i = 0; i < running.size(); ++i) {
    EXPECT_THAT(Must(running[i].Wait()), ExitedWith(0, std::to_string(i) + "\n"));
  }
}

TEST_F(Concurrency, SandboxMayBeDestroyedUnderItsUsers) {
  for (int round = 0; round < 5; ++round) {
    Sandbox sandbox = MakeSandbox();
    std::atomic<int> started = 0;
    std::vector<std::jthread> users;
    for (int i = 0; i < 8; ++i) {
      users.emplace_back([&] {
        while (true) {
          const auto run = sandbox.RunShell("echo x; sleep 0.01");
          if (!run) {
            EXPECT_EQ(run.error().code, ErrorCode::kBackendLost);
            return;
          }
          EXPECT_TRUE(run->ok() || run->status == Status::kCancelled ||
                      run->termination.cause == Cause::kBackendLost)
              << ::testing::PrintToString(*run);
          ++started;
        }
      });
    }
    while (started < 8) std::this_thread::yield();
    Must(sandbox.Destroy());
  }
}

// An execution may settle before the call that started it returns.
TEST_F(Concurrency, ExecutionsThatEndAtOnceHoldUpNoDestroy) {
  for (int round = 0; round < 4; ++round) {
    Sandbox sandbox = MakeSandbox();
    InParallel([&](int) {
      for (int i = 0; i < 20; ++i) {
        EXPECT_THAT(Exec(sandbox, {"./no-such-program"}), EndedBy(Cause::kStartupFailed));
      }
    });
    Must(sandbox.Destroy());
  }
}

TEST_F(Concurrency, ManyWaitersGetTheSameResult) {
  Sandbox sandbox = MakeSandbox();
  const Execution running = Must(sandbox.StartShell("sleep 0.1; echo once"));
  std::atomic<int> right = 0;
  InParallel([&](int) { right += Must(running.Wait()).out.bytes == "once\n"; });
  EXPECT_EQ(right, kThreads);
}

TEST_F(Concurrency, FilesAndExecutionsMixFreely) {
  Sandbox sandbox = MakeSandbox();
  std::atomic<int> right = 0;
  InParallel([&](int thread) {
    const std::string file = "f" + std::to_string(thread);
    for (int round = 0; round < 10; ++round) {
      const std::string content = file + "." + std::to_string(round);
      Must(sandbox.WriteFile(file, content));
      right += Exec(sandbox, {"cat", file}).out.bytes == content;
      right += Must(sandbox.ReadFile(file)) == content;
    }
  });
  EXPECT_EQ(right, kThreads * 20);
}

}  // namespace
}  // namespace palmshed::tests
