// Everything that can be done to one sandbox and its executions, at the same time. Whatever comes
// first: each call answers, each execution settles in one of its states, and nothing is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/residue.h"

namespace palmshed::tests {
namespace {

class Races : public KernelTest {
 protected:
  Races() : seed_(std::random_device()()) { RecordProperty("seed", std::to_string(seed_)); }
  unsigned seed() const { return seed_; }

 private:
  const unsigned seed_;
};

constexpr int kThreads = 8;
constexpr int kSteps = 12;

using Fate = palmshed::Descendants;

/// The executions that somebody may do something to.
class Shared {
 public:
  void Add(Execution execution) {
    const std::lock_guard lock(mu_);
    executions_.push_back(std::move(execution));
  }
  std::optional<Execution> Pick(std::mt19937& random) {
    const std::lock_guard lock(mu_);
    if (executions_.empty()) return std::nullopt;
    return executions_[random() % executions_.size()];
  }
  std::vector<Execution> All() {
    const std::lock_guard lock(mu_);
    return executions_;
  }

 private:
  std::mutex mu_;
  std::vector<Execution> executions_;
};

/// The sandbox may be gone by the time that it is asked, and then that is the answer.
template <class T>
void ExpectPlainAnswer(const Result<T>& result) {
  if (result) return;
  EXPECT_THAT(result.error().code,
              ::testing::AnyOf(ErrorCode::kBackendLost, ErrorCode::kConflict,
                               ErrorCode::kInvalidOptions, ErrorCode::kOverloaded))
      << result.error().message;
}

void StartSomething(Sandbox& sandbox, Shared& shared, std::mt19937& random) {
  static constexpr std::array kCommands{"echo quick",
                                        "sleep 0.05",
                                        "sleep 30 & echo left",
                                        "cat; exit 3",
                                        "while :; do echo noise; done",
                                        "trap '' TERM; sleep 30"};
  static constexpr std::array kFates{Fate::kKill, Fate::kDetach, Fate::kWait};
  const bool pipe = random() % 2 == 0;
  auto started = sandbox.StartShell(kCommands[random() % kCommands.size()],
                                    {.timeout = Millis(1 + static_cast<int>(random() % 400)),
                                     .max_output = 64_KiB,
                                     .stdin_pipe = pipe,
                                     .descendants = kFates[random() % kFates.size()]});
  ExpectPlainAnswer(started);
  if (started) shared.Add(*std::move(started));
}

void DoSomethingTo(Execution execution, std::mt19937& random) {
  static constexpr std::array kSignals{SIGTERM, SIGKILL, SIGUSR1, SIGSTOP, SIGCONT};
  std::array<std::byte, 512> buffer{};
  switch (random() % 6) {
    case 0:
      return ExpectPlainAnswer(execution.Cancel());
    case 1:
      return ExpectPlainAnswer(execution.Signal(kSignals[random() % kSignals.size()]));
    case 2:
      return ExpectPlainAnswer(execution.Write(buffer));
    case 3:
      return ExpectPlainAnswer(execution.CloseStdin());
    case 4:
      return ExpectPlainAnswer(execution.Read(Stream::kStdout, 0, buffer, Millis(1)));
    default:
      (void)execution.WaitFor(Millis(static_cast<int>(random() % 20)));
  }
}

/// With `destroy`, one of the threads destroys the sandbox on the way.
void Race(Sandbox& sandbox, unsigned seed, bool destroy) {
  Shared shared;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937 random(seed + static_cast<unsigned>(thread));
      for (int step = 0; step < kSteps; ++step) {
        if (random() % 3 == 0) StartSomething(sandbox, shared, random);
        if (auto execution = shared.Pick(random)) DoSomethingTo(*std::move(execution), random);
        if (destroy && thread == 0 && step == kSteps / 2) {
          EXPECT_THAT(sandbox.Destroy(), Succeeds());
        }
      }
    });
  }
  threads.clear();
  for (const Execution& execution : shared.All()) {
    const auto result = execution.WaitFor(Millis(60'000));
    ASSERT_TRUE(result) << execution.id();
    EXPECT_NE(result->status, Status::kRunning);
    EXPECT_EQ(execution.status(), result->status);
  }
}

TEST_F(Races, CallsOnOneSandboxAllAnswer) {
  for (unsigned round = 0; round < 6; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed() + 100 * round));
    Sandbox sandbox = MakeSandbox();
    Race(sandbox, seed() + 100 * round, false);
    EXPECT_THAT(ExecShell(sandbox, "echo usable"), ExitedWith(0, "usable\n"));
    EXPECT_THAT(sandbox.Destroy(), Succeeds());
  }
}

TEST_F(Races, SandboxMayBeDestroyedInTheMiddle) {
  for (unsigned round = 0; round < 6; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed() + 100 * round));
    Sandbox sandbox = MakeSandbox();
    Race(sandbox, seed() + 100 * round, true);
    EXPECT_THAT(sandbox.Start({"true"}), FailsWith(ErrorCode::kBackendLost));
  }
}

// Whichever comes first: both succeed, and neither returns while there is anything to be seen.
TEST_F(Races, TwoThreadsMayDestroyOneSandbox) {
  const std::string name = UniqueName();
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    Sandbox sandbox = MakeSandbox();
    AddProbe(sandbox, name);
    const Execution running = Must(sandbox.Start({"./" + name, "stay"}));
    ASSERT_TRUE(AwaitOutput(running, "ready"));
    ASSERT_THAT(FindProcesses(name), ::testing::SizeIs(1));
    std::barrier both(2);
    const auto destroy = [&] {
      both.arrive_and_wait();
      EXPECT_THAT(sandbox.Destroy(), Succeeds());
      EXPECT_THAT(FindProcesses(name), ::testing::IsEmpty());
      EXPECT_THAT(TreeOf(workspaces()), ::testing::IsEmpty());
    };
    std::jthread one(destroy), other(destroy);
    one.join();
    other.join();
    EXPECT_EQ(Must(running.Wait()).status, Status::kCancelled);
    EXPECT_THAT(sandbox.Destroy(), Succeeds());
  }
}

}  // namespace
}  // namespace palmshed::tests
