// Everything at once: five sandboxes do their worst, and a sixth hardly notices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <list>
#include <ratio>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/eventually.h"
#include "support/kernel_test.h"
#include "support/must.h"
#include "support/process.h"
#include "support/residue.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr int kMostTries = 3;  ///< What others do on this machine only makes it slower.
constexpr int kRounds = 20;
constexpr int kMostRounds = 50;
constexpr int kRunsPerRound = 25;

SandboxOptions AllLimits() {
  return {.cpu_time_limit = Millis(60'000),
          .memory = 64_MiB,
          .disk_quota = 20_MiB,
          .timeout = Millis(60'000),
          .pids = 32,
          .degraded = {"cpuQuota"}};
}

/// What uses a sandbox up, again and again, and what shows beforehand that it will be stopped.
struct Bomb {
  std::string command;
  std::function<void(Sandbox&)> expect_held;
};

void ExpectRefused(Sandbox& sandbox, const char* what) {
  const ExecResult run = Exec(sandbox, {"./probe", what, "100"});
  ASSERT_EQ(run.exit_code, kRefused) << ::testing::PrintToString(run);
  ASSERT_THAT(run.out.bytes, HasSubstr("EAGAIN"));
}

void ExpectEnded(Sandbox& sandbox, const std::string& command, Cause cause) {
  ASSERT_THAT(ExecShell(sandbox, command), EndedBy(cause));
}

std::vector<Bomb> Bombs(const std::string& program) {
  const std::string fill = "i=0; while :; do i=$((i+1)); head -c 1M /dev/zero > f$i; done";
  const std::string flood =
      "mkdir -p m; cd m; i=0; while :; do i=$((i+1)); seq -f $i.%g 1000 | xargs touch; done";
  const std::string memory = "exec ./" + program + " touch-and-stay 4000";
  return {
      {"exec ./" + program + " fork-bomb", [](auto& in) { ExpectRefused(in, "processes"); }},
      {"exec ./" + program + " thread-bomb", [](auto& in) { ExpectRefused(in, "threads"); }},
      {memory, [=](auto& in) { ExpectEnded(in, memory, Cause::kMemory); }},
      {fill, [=](auto& in) { ExpectEnded(in, fill, Cause::kDisk); }},
      {flood, [=](auto& in) { ExpectEnded(in, flood, Cause::kDisk); }},
  };
}

/// What the bombs have of the processors, and what the sixth sandbox is held to.
struct Weather {
  ExecOptions bombs{};
  SandboxOptions sixth{};
};

/// Bombs that go off again as soon as they are stopped, until this ends.
class Storm {
 public:
  Storm(std::list<Sandbox>& sandboxes, const std::vector<Bomb>& bombs, const ExecOptions& options) {
    auto bomb = bombs.begin();
    for (Sandbox& sandbox : sandboxes) {
      threads_.emplace_back(
          [&sandbox, &options, command = (bomb++)->command](const std::stop_token& stop) {
            while (!stop.stop_requested()) {
              const auto run = sandbox.RunShell(command, options, stop);
              EXPECT_TRUE(run) << ::testing::PrintToString(run.error());
              if (!run) return;
            }
          });
    }
  }
  ~Storm() {
    for (std::jthread& thread : threads_) thread.request_stop();
  }
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;

 private:
  std::vector<std::jthread> threads_{};
};

double Median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

/// What the sixth took, without and beside the bombs.
struct Round {
  std::vector<double> quiet{};
  std::vector<double> stormy{};
  std::uint64_t stolen = 0;  ///< By the machine that this one is a guest of, in ticks.
};

/// proc_stat(5): the eighth number of the first line.
std::uint64_t StolenSoFar() {
  std::ifstream stat("/proc/stat");
  std::string word;
  for (int i = 0; i < 9; ++i) stat >> word;
  return std::stoull(word);
}

void Measure(Sandbox& sandbox, std::vector<double>& latencies) {
  for (int i = 0; i < kRunsPerRound; ++i) {
    const auto begin = Clock::now();
    const ExecResult run = Exec(sandbox, {"true"});
    latencies.push_back(Milliseconds(Clock::now() - begin).count());
    EXPECT_THAT(run, ExitedWith(0, ""));
  }
}

/// A processor that is taken away counts as one that the bombs have. So the rounds that tell
/// something are those in which the least was.
bool Holds(std::vector<Round> rounds) {
  std::ranges::sort(rounds, {}, &Round::stolen);
  rounds.resize(kRounds);
  std::vector<double> quiet, stormy;
  for (const Round& round : rounds) {
    quiet.insert(quiet.end(), round.quiet.begin(), round.quiet.end());
    stormy.insert(stormy.end(), round.stormy.begin(), round.stormy.end());
  }
  std::printf("exec beside five bombs: %.2f ms, without: %.2f ms (stolen: up to %llu ticks)\n",
              Median(stormy), Median(quiet), static_cast<unsigned long long>(rounds.back().stolen));
  return Median(stormy) < 3 * Median(quiet);
}

void ExpectResponsive(Engine& engine, const Weather& weather) {
  const std::string name = UniqueName();
  const std::vector<Bomb> bombs = Bombs(name);
  std::list<Sandbox> sandboxes;
  for (const Bomb& bomb : bombs) {
    AddProbe(sandboxes.emplace_back(MakeSandboxIn(engine, AllLimits())), name);
    bomb.expect_held(sandboxes.back());
    if (::testing::Test::HasFatalFailure()) return;
  }
  Sandbox sixth = MakeSandboxIn(engine, weather.sixth);
  const auto measure = [&](Round& round) {
    const std::uint64_t before = StolenSoFar();
    Measure(sixth, round.quiet);
    const Storm storm(sandboxes, bombs, weather.bombs);
    // The fork bomb has gone off, so the others have.
    ASSERT_TRUE(Eventually([&] { return FindProcesses(name).size() > 20; }));
    Measure(sixth, round.stormy);
    round.stolen = StolenSoFar() - before;
  };
  bool holds = false;
  for (int tries = 0; tries < kMostTries && !holds; ++tries) {
    std::vector<Round> rounds;
    for (int clean = 0; clean < kRounds && std::ssize(rounds) < kMostRounds;) {
      measure(rounds.emplace_back());
      if (::testing::Test::HasFatalFailure()) return;
      if (rounds.back().stolen == 0) ++clean;
    }
    holds = Holds(std::move(rounds));
  }
  EXPECT_TRUE(holds) << "beside the bombs the sixth took more than three times as long, each time";
  for (Sandbox& sandbox : sandboxes) {
    EXPECT_THAT(ExecShell(sandbox, "echo usable"), ExitedWith(0, "usable\n"));
    Must(sandbox.Destroy());
  }
  EXPECT_THAT(FindProcesses(name), IsEmpty());
}

/// With a share of the processors for each bomb, where this host can hold them to one.
Weather Shared() { return {.bombs = {.cpu_quota = 0.1}, .sixth = AllLimits()}; }

/// Landlock ABI 6 (Linux 6.12): landlock_create_ruleset(2), LANDLOCK_CREATE_RULESET_VERSION.
bool HasSignalScopes() { return ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1U) >= 6; }

class LimitsStorm : public KernelTest {};

// C073, C092
TEST_F(LimitsStorm, LeavesTheEngineResponsiveAndNothingBehind) {
  ExpectResponsive(engine(), Shared());
}

// C073, C092
TEST_F(LimitsStorm, WithAllProcessorsLeavesTheEngineResponsiveAndNothingBehind) {
  ExpectResponsive(engine(), {});
}

// C073, C092
TEST_F(LimitsStorm, WithAllProcessorsLeavesALimitedSixthResponsive) {
  {
    Sandbox sandbox = MakeSandbox(AllLimits());
    ASSERT_TRUE(ExecShell(sandbox, "true").ok());  // Its groups may be made after it.
    PALMSHED_SKIP_UNLESS(!GroupsOf(sandbox.id()).empty(), "there are no groups here");
  }
  PALMSHED_SKIP_UNLESS(HasSignalScopes(), "each execution needs a child of its own here");
  ExpectResponsive(engine(), {.sixth = AllLimits()});
}

TEST(LimitsStormOfAnOrdinaryUser, LeavesTheEngineResponsiveAndNothingBehind) {
  AsOrdinaryUser([] {
    const TempDir root;
    Engine engine = MakeEngine(root);
    ExpectResponsive(engine, Shared());
  });
}

}  // namespace
}  // namespace palmshed::tests
