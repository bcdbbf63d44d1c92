// Engines and their helpers, killed at any moment, over and over: nothing goes on running, and the
// next engine removes what they left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <list>
#include <random>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "endurance/rounds.h"
#include "palmshed/palmshed.h"
#include "support/eventually.h"
#include "support/kernel_test.h"
#include "support/must.h"
#include "support/process.h"
#include "support/residue.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using ::testing::IsEmpty;

constexpr std::chrono::seconds kSoon{2};
constexpr std::chrono::seconds kAtLeast{10};  // For what is left to be collected,
constexpr milliseconds kForEachLeft{20};      // and for each file of it.
constexpr int kThreads = 3;
/// By then every thread of a host has gone through all that it does.
constexpr int kLatestMs = 60;

std::atomic<bool> enough = false;

SandboxOptions OptionsOf(int round) {
  if (round % 2 == 0) return {};
  return {.memory = 64_MiB, .disk_quota = 64_MiB, .pids = 32};
}

/// A sandbox's life, with every kind of workload. Whatever has been killed meanwhile, each call
/// comes back.
void Live(Engine& engine, const std::string& name, int round) {
  auto sandbox = engine.CreateSandbox(OptionsOf(round));
  if (!sandbox) return;
  (void)sandbox->WriteFile(name, Slurp(ProbePath()), 0755);
  (void)sandbox->Run({"true"});
  const auto staying = sandbox->Start({"./" + name, "stay"});
  const auto escaped = sandbox->Start({"./" + name, "daemon", "wait"});
  (void)sandbox->RunShell("echo x > f; cat f");
  if (round % 3 != 0) (void)sandbox->Destroy();
}

/// A host program that makes and destroys sandboxes on several threads until it is killed, or told
/// to stop by SIGUSR1.
void KeepBusy(Engine& engine, const std::string& name) {
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&engine, &name, thread] {
      for (int round = thread; !enough; ++round) Live(engine, name, round);
    });
  }
}

bool IsHealthy(Engine& engine) {
  auto sandbox = engine.CreateSandbox();
  if (!sandbox) return false;
  const auto run = sandbox->Run({"true"});
  return run && run->ok();
}

class KillTest : public ::testing::Test {
 protected:
  KillTest() {
    AdoptOrphans();
    std::random_device device;
    seed_ = device();
    random_.seed(seed_);
  }

  /// At which moment of a round something is killed.
  milliseconds Moment() {
    return milliseconds(std::uniform_int_distribution<int>(0, kLatestMs)(random_));
  }
  std::size_t Below(std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
  }
  void ExpectNothingRuns(int round) {
    EXPECT_TRUE(Eventually([] { return Descendants().empty(); }, kSoon))
        << "round " << round << " of seed " << seed_ << ": "
        << ::testing::PrintToString(Descendants());
  }
  /// Another engine finds what is left and removes it. That may be thousands of sandboxes: hardly
  /// any of the dead lived long enough to collect.
  void ExpectCollected() {
    const milliseconds patience = kAtLeast + kForEachLeft * TreeOf(root_.path()).size();
    {
      Engine next = MakeEngine(root_);
      Sandbox sandbox = MakeSandboxIn(next);
      EXPECT_THAT(ExecShell(sandbox, "echo healthy"), ExitedWith(0, "healthy\n"));
      Must(sandbox.Destroy());
      EXPECT_TRUE(Eventually([&] { return TreeOf(root_.path()).empty(); }, patience))
          << "seed " << seed_ << ": " << ::testing::PrintToString(TreeOf(root_.path()));
    }
    const auto left = [&] { return Residue::Snapshot().Since(before_); };
    EXPECT_TRUE(Eventually([&] { return left().empty(); }, patience))
        << "seed " << seed_ << ": " << ::testing::PrintToString(left());
  }

  const Residue before_ = Residue::Snapshot();
  const TempDir root_;
  unsigned seed_ = 0;
  std::mt19937 random_;
};

// C007, C019, C020: all rounds share a directory, so that each finds what those before it left.
TEST_F(KillTest, HostProgramAtAnyMoment) {
  const std::string name = UniqueName();
  for (int round = 0; round < Kills() && !HasFailure(); ++round) {
    ChildHost host([&](ChildHost& self) {
      self.Tell("started");
      Engine engine = MakeEngine(root_);
      KeepBusy(engine, name);
    });
    ASSERT_EQ(host.Hear(), "started");
    std::this_thread::sleep_for(Moment());  // What is tried is the moment.
    host.Kill();
    ExpectNothingRuns(round);
  }
  ExpectCollected();
}

// C019: a fork of the host program holds copies of all its descriptors.
TEST_F(KillTest, HostProgramThatHasForkedAtAnyMoment) {
  const std::string name = UniqueName();
  for (int round = 0; round < Kills() && !HasFailure(); ++round) {
    ChildHost host([&](ChildHost& self) {
      Engine engine = MakeEngine(root_);
      Sandbox sandbox = MakeSandboxIn(engine);
      const pid_t fork = ::fork();
      if (fork == 0) ChildHost::StayForEver();
      self.Tell(std::to_string(fork));
      KeepBusy(engine, name);
    });
    const pid_t fork = std::stoi(host.Hear());
    std::this_thread::sleep_for(Moment());
    host.Kill();
    EXPECT_TRUE(Eventually([] { return Descendants().size() == 1; }, kSoon))
        << "seed " << seed_ << ": " << ::testing::PrintToString(Descendants());
    (void)::kill(fork, SIGKILL);
    ExpectNothingRuns(round);
  }
  ExpectCollected();
}

/// What each thread of what still runs waits for, as the kernel calls it (proc_pid_wchan(5)).
std::string Waits() {
  std::ostringstream waits;
  for (const std::string& process : Descendants()) {
    waits << "\n  " << process << ":";
    const std::string tasks = "/proc/" + std::to_string(std::stoi(process)) + "/task";
    std::error_code gone;
    for (fs::directory_iterator at(tasks, gone), end; !gone && at != end; at.increment(gone)) {
      const std::string comm = SlurpIfThere(at->path() / "comm");
      waits << " " << comm.substr(0, comm.find('\n')) << "=" << SlurpIfThere(at->path() / "wchan");
    }
  }
  return waits.str();
}

std::vector<pid_t> Helpers() {
  std::vector<pid_t> pids;
  for (const std::string& process : Descendants()) {
    if (process.find("palmshed") != process.npos) pids.push_back(std::stoi(process));
  }
  return pids;
}

/// Unless it has ended, and its number may be somebody else's. Who it was.
std::string KillHelper(pid_t helper) {
  const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, helper, 0));
  if (descriptor < 0) return "";
  std::string killed;
  if (std::ranges::count(Helpers(), helper) == 1) {
    killed = " " + std::to_string(helper) + " " +
             SlurpIfThere("/proc/" + std::to_string(helper) + "/cmdline");
    std::ranges::replace(killed, '\0', '.');
    (void)::syscall(SYS_pidfd_send_signal, descriptor, SIGKILL, nullptr, 0);
  }
  (void)::close(descriptor);
  return killed;
}

// C021: launchers, inits and what bears programs. The engine survives, and cleans up by itself.
TEST_F(KillTest, HelpersAtAnyMoment) {
  const std::string name = UniqueName();
  for (int round = 0; round < Kills() && !HasFailure(); ++round) {
    ChildHost host([&](ChildHost& self) {
      enough = false;
      (void)::signal(SIGUSR1, [](int) { enough = true; });
      {
        Engine engine = MakeEngine(root_);
        self.Tell("started");
        KeepBusy(engine, name);
        // The first request may still meet a dead launcher.
        const bool healthy = Eventually([&] { return IsHealthy(engine); });
        self.Tell(healthy ? "healthy" : "not healthy");
      }
      self.Tell("ended");
    });
    ASSERT_EQ(host.Hear(), "started");
    std::string killed;
    for (int kills = 0; kills < 3; ++kills) {
      std::this_thread::sleep_for(Moment());
      const std::vector<pid_t> helpers = Helpers();
      if (!helpers.empty()) killed += KillHelper(helpers[Below(helpers.size())]);
    }
    (void)::kill(host.pid(), SIGUSR1);
    SCOPED_TRACE("killed:" + killed);
    EXPECT_EQ(host.Hear(), "healthy") << "round " << round << " of seed " << seed_ << Waits();
    EXPECT_EQ(host.Hear(), "ended") << "round " << round << " of seed " << seed_ << Waits();
    ExpectNothingRuns(round);
    EXPECT_THAT(TreeOf(root_.path()), IsEmpty()) << "round " << round << " of seed " << seed_;
  }
  ExpectCollected();
}

// C020: two engines come at once to what others have left, and collect while the other works.
TEST_F(KillTest, CollectorsLeaveTheLivingAlone) {
  const std::string name = UniqueName();
  const auto work = [&](ChildHost& self) {
    Engine engine = MakeEngine(root_);
    std::list<Sandbox> sandboxes;
    bool well = true;
    for (int i = 0; i < 5; ++i) {
      Sandbox& sandbox = sandboxes.emplace_back(MakeSandboxIn(engine, OptionsOf(i)));
      well = well && ExecShell(sandbox, "echo " + std::string(sandbox.id()) + " > mine").ok();
      for (Sandbox& each : sandboxes) {
        well = well && Exec(each, {"cat", "mine"}).out.bytes == std::string(each.id()) + "\n";
      }
    }
    self.Tell(well ? "well" : "harmed");
  };
  for (int round = 0; round < std::max(Kills() / 10, 1) && !HasFailure(); ++round) {
    for (int dead = 0; dead < 3; ++dead) {
      ChildHost host([&](ChildHost& self) {
        Engine engine = MakeEngine(root_);
        Sandbox sandbox = MakeSandboxIn(engine);
        self.Tell("started");
        KeepBusy(engine, name);
      });
      ASSERT_EQ(host.Hear(), "started");
      std::this_thread::sleep_for(Moment());
      host.Kill();
    }
    ExpectNothingRuns(round);
    ChildHost one(work), other(work);
    EXPECT_EQ(one.Hear(), "well") << "round " << round << " of seed " << seed_;
    EXPECT_EQ(other.Hear(), "well") << "round " << round << " of seed " << seed_;
    one.Kill();
    other.Kill();
    ExpectNothingRuns(round);
  }
  ExpectCollected();
}

}  // namespace
}  // namespace palmshed::tests
