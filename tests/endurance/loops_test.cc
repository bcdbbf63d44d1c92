// Many sandboxes, one after another and at once, in a process that stays: it takes no more of the
// host afterwards than before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <functional>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "endurance/rounds.h"
#include "endurance/usage.h"
#include "palmshed/palmshed.h"
#include "support/eventually.h"
#include "support/kernel_test.h"
#include "support/must.h"
#include "support/process.h"
#include "support/residue.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::IsEmpty;

/// What an allocator may keep of one peak more than of another.
constexpr std::size_t kSlackKib = 1024;
/// Threads that come when several want something at once, and stay.
constexpr std::size_t kThreads = 4;

SandboxOptions AllLimits() {
  return {.cpu_time_limit = Millis(10'000),
          .memory = 64_MiB,
          .disk_quota = 64_MiB,
          .timeout = Millis(60'000),
          .pids = 32};
}

class Endurance : public KernelTest {
 protected:
  /// What there is once nothing is under way any more, and what is kept for the next has been given
  /// up, by the allocator too: how much it keeps depends on what the threads happened to do at
  /// once.
  Usage AtRest() {
    Usage usage;
    EXPECT_TRUE(Eventually(
        [&] {
          (void)::malloc_trim(0);
          usage = Usage::Now();
          return TreeOf(workspaces()).empty() && usage.cgroups == before_.cgroups.size();
        },
        kRest));
    return usage;
  }
  static void ExpectNoMore(const Usage& now, const Usage& then) {
    std::cout << "before: " << then << "\nafter:  " << now << '\n';
    EXPECT_LE(now.descriptors, then.descriptors);
    EXPECT_LE(now.threads, then.threads + kThreads);
    EXPECT_LE(now.processes, then.processes);
    EXPECT_LE(now.memory_kib, then.memory_kib + kSlackKib);
    EXPECT_LE(now.helpers_kib, then.helpers_kib + kSlackKib);
    EXPECT_LE(now.mounts, then.mounts);
    EXPECT_LE(now.cgroups, then.cgroups);
  }

  const Residue before_ = Residue::Snapshot();
};

void LiveAndDie(Engine& engine, const SandboxOptions& options) {
  Sandbox sandbox = Must(engine.CreateSandbox(options));
  ASSERT_THAT(ExecShell(sandbox, "echo x > f; cat f"), ExitedWith(0, "x\n"));
  Must(sandbox.Destroy());
}

// C007
TEST_F(Endurance, SandboxesOneAfterAnotherLeaveNothing) {
  const auto live = [&](int round) {
    LiveAndDie(engine(), round % 2 == 0 ? SandboxOptions{} : AllLimits());
  };
  const int warm_up = std::max(Loops() / 10, 20);
  for (int round = 0; round < warm_up && !HasFatalFailure(); ++round) live(round);
  const Usage warm = AtRest();
  for (int round = warm_up; round < Loops() && !HasFatalFailure(); ++round) live(round);
  ExpectNoMore(AtRest(), warm);
}

/// So many threads at once, each with its number.
void InParallel(int threads, const std::function<void(int)>& body) {
  std::vector<std::jthread> running;
  for (int i = 0; i < threads; ++i) running.emplace_back([&body, i] { body(i); });
}

/// As many descriptors as this process may have; the soft limit is meant for select(2).
void RaiseDescriptorLimit() {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

constexpr int kAtOnce = 4;

/// A sandbox with executions that have begun, and go on when they are told to.
struct Live {
  Sandbox sandbox;
  std::vector<Execution> running{};
};

std::string TagOf(int sandbox, std::size_t execution) {
  return std::to_string(sandbox) + "." + std::to_string(execution);
}

Live Begin(Engine& engine, int number) {
  Live live{Must(engine.CreateSandbox(number % 2 == 0 ? SandboxOptions{} : AllLimits()))};
  for (std::size_t n = 0; n < kAtOnce; ++n) {
    const std::string tag = TagOf(number, n);
    live.running.push_back(Must(live.sandbox.StartShell(
        "echo " + tag + " > " + tag + "; echo up; read go; ls; cat " + tag + " >&2; exit $go",
        {.stdin_pipe = true})));
  }
  for (const Execution& execution : live.running) EXPECT_TRUE(AwaitOutput(execution, "up\n"));
  return live;
}

/// Lets them go on; the number that were right. By now each sees the files of all in its sandbox,
/// and no other.
int End(Live& live, int number) {
  std::string seen = "up\n";
  for (std::size_t n = 0; n < kAtOnce; ++n) seen += TagOf(number, n) + "\n";
  const std::string go = std::to_string(number) + "\n";
  for (Execution& execution : live.running) {
    EXPECT_EQ(execution.status(), Status::kRunning);
    Must(execution.Write(std::as_bytes(std::span(go))));
  }
  int right = 0;
  for (std::size_t n = 0; n < kAtOnce; ++n) {
    const ExecResult result = Must(live.running[n].Wait());
    right += result.exit_code == number && result.out.bytes == seen &&
             result.err.bytes == TagOf(number, n) + "\n";
  }
  Must(live.sandbox.Destroy());
  return right;
}

/// A hundred sandboxes with four executions each, made by ten threads and all alive together.
int RunHundred(Engine& engine) {
  constexpr int kSandboxes = 100, kThreadsOfTest = 10;
  std::atomic<int> right = 0;
  std::barrier all_up(kThreadsOfTest);
  InParallel(kThreadsOfTest, [&](int thread) {
    std::vector<Live> mine;
    for (int i = thread; i < kSandboxes; i += kThreadsOfTest) mine.push_back(Begin(engine, i));
    all_up.arrive_and_wait();
    for (std::size_t i = 0; i < mine.size(); ++i) {
      right += End(mine[i], thread + static_cast<int>(i) * kThreadsOfTest);
    }
  });
  return right;
}

TEST_F(Endurance, HundredSandboxesAtOnceKeepApart) {
  RaiseDescriptorLimit();
  EXPECT_EQ(RunHundred(engine()), 400);
  const Usage warm = AtRest();
  EXPECT_EQ(RunHundred(engine()), 400);
  ExpectNoMore(AtRest(), warm);
}

/// Two descriptors each, once they have come to rest.
void LetThousandLive(Engine& engine, std::size_t most_descriptors) {
  constexpr std::size_t kSandboxes = 1000;
  std::vector<Sandbox> sandboxes;
  for (std::size_t i = 0; i < kSandboxes; ++i) {
    sandboxes.push_back(Must(engine.CreateSandbox()));
    ASSERT_THAT(ExecShell(sandboxes.back(), "echo " + std::to_string(i) + " > f"),
                ExitedWith(0, ""));
  }
  for (std::size_t i = 0; i < kSandboxes; ++i) {
    ASSERT_THAT(Exec(sandboxes[i], {"cat", "f"}), ExitedWith(0, std::to_string(i) + "\n"));
  }
  EXPECT_TRUE(Eventually([&] { return Usage::Now().descriptors <= most_descriptors; }, kRest));
  std::cout << "a thousand: " << Usage::Now() << '\n';
  for (Sandbox& sandbox : sandboxes) Must(sandbox.Destroy());
}

TEST_F(Endurance, ThousandSandboxesLiveAtOnce) {
  RaiseDescriptorLimit();
  // The second starts the launcher, which stays.
  for (int i = 0; i < 2; ++i) LiveAndDie(engine(), {});
  const std::size_t most = AtRest().descriptors + 2000;
  LetThousandLive(engine(), most);
  const Usage warm = AtRest();
  LetThousandLive(engine(), most);
  ExpectNoMore(AtRest(), warm);
}

// C076: 32 threads, each of which writes a program and runs it at once.
TEST_F(Endurance, ProgramsJustWrittenAreNeverBusy) {
  constexpr int kWriters = 32;
  constexpr int kRounds = 200;
  std::atomic<int> ok = 0;
  const auto write_and_run = [&](Sandbox& sandbox, int thread) {
    for (int round = 0; round < kRounds; ++round) {
      const std::string name = "run_" + std::to_string(thread);
      Must(sandbox.WriteFile(name, "#!/bin/sh\necho ok\n", 0755));
      ok += Must(sandbox.Run({"./" + name})).out.bytes == "ok\n";
    }
  };
  Sandbox shared = Must(engine().CreateSandbox());
  InParallel(kWriters, [&](int thread) {
    if (thread % 2 == 0) return write_and_run(shared, thread);
    Sandbox own = Must(engine().CreateSandbox());
    write_and_run(own, thread);
  });
  EXPECT_EQ(ok, kWriters * kRounds);
}

/// Fills what is left of a limit until an engine says so, and then lets go of it.
void ExpectClearErrorAndRecovery(Engine& engine, ErrorCode code) {
  std::vector<Sandbox> sandboxes;
  std::optional<Error> error;
  while (!error && sandboxes.size() < 1000) {
    auto made = engine.CreateSandbox();
    if (made) {
      sandboxes.push_back(*std::move(made));
    } else {
      error = made.error();
    }
  }
  ASSERT_TRUE(error) << sandboxes.size() << " sandboxes";
  EXPECT_EQ(error->code, code) << error->message;
  EXPECT_NE(error->sys_errno, 0) << error->message;
  ASSERT_FALSE(sandboxes.empty());
  Must(sandboxes.back().Destroy());
  sandboxes.pop_back();
  EXPECT_THAT(ExecShell(sandboxes.front(), "echo alive"), ExitedWith(0, "alive\n"));
  sandboxes.clear();
  EXPECT_TRUE(Eventually([&] { return engine.CreateSandbox().has_value(); }));
}

TEST_F(Endurance, TooFewDescriptorsAreAClearError) {
  InForkedProcess([] {
    const TempDir root;
    Engine engine = MakeEngine(root);
    LiveAndDie(engine, {});
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 64;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    ExpectClearErrorAndRecovery(engine, ErrorCode::kOverloaded);
  });
}

rlim_t LimitDescriptors(rlim_t most) {
  rlimit limit{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlim_t before = std::exchange(limit.rlim_cur, most);
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  return before;
}

/// True when everything worked. Descriptors of the engine come and go on its own threads, so that
/// the same number may be enough once and too few another time.
bool LiveWithFewDescriptors(Engine& engine, const SandboxOptions& options) {
  const auto expect_clear = [](const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::kOverloaded) << error.message << ", " << error.op;
    EXPECT_NE(error.sys_errno, 0) << error.message;
  };
  auto sandbox = engine.CreateSandbox(options);
  if (!sandbox) {
    expect_clear(sandbox.error());
    return false;
  }
  const auto run = sandbox->Run({"true"});
  if (!run) expect_clear(run.error());
  EXPECT_TRUE(!run || run->ok()) << ::testing::PrintToString(*run);
  Must(sandbox->Destroy());
  return run.has_value();
}

// Each number of descriptors that is too few makes something else fail.
TEST_F(Endurance, EveryDescriptorThatIsMissingIsAClearError) {
  for (const SandboxOptions& options : {SandboxOptions{}, AllLimits()}) {
    InForkedProcess([&] {
      const TempDir root;
      Engine engine = MakeEngine(root);
      for (int i = 0; i < 2; ++i) LiveAndDie(engine, options);
      const std::size_t open = Usage::Now().descriptors;
      int worked = 0;
      for (rlim_t more = 0; more < 60; ++more) {
        const rlim_t before = LimitDescriptors(open + more);
        worked += LiveWithFewDescriptors(engine, options) ? 1 : 0;
        (void)LimitDescriptors(before);
        LiveAndDie(engine, options);
      }
      EXPECT_GT(worked, 0);
      EXPECT_LT(worked, 60);
    });
  }
}

}  // namespace
}  // namespace palmshed::tests
