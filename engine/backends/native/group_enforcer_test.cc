// Executions held to their limits, with children of the test in the place of a sandbox's.
#include "backends/native/group_enforcer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "backends/native/enforcer.h"
#include "base/ids.h"
#include "base/loop.h"
#include "base/processors.h"
#include "kernel/cgroup.h"
#include "kernel/cgroup_test_support.h"
#include "palmshed/error.h"
#include "palmshed/result.h"
#include "palmshed/units.h"
#include "plan/plan.h"

namespace palmshed::backends::native {
namespace {

using kernel::Burn;
using kernel::ExitedWith;
using kernel::Killed;
using kernel::UseMemory;
using kernel::WaitingChild;
using literals::operator""_MiB;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAreArray;
using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Pair;

/// What became of one child.
struct Outcome {
  siginfo_t status{};
  bool told = false;  ///< The enforcer asked for the end.
  Enforced enforced{};
};

class GroupEnforcerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    std::string why;
    tree_ = kernel::HostTree(why);
    if (!tree_) GTEST_SKIP() << why;
    auto loop = Loop::Create();
    ASSERT_TRUE(loop);
    loop_ = std::move(*loop);
    source_ = MakeGroupSource({.tree = tree_.get(),
                               .name = name_,
                               .processors = OnlineProcessors(),
                               .record = [this](const std::vector<std::string>& directories) {
                                 recorded_.push_back(directories);
                                 EXPECT_FALSE(std::filesystem::exists(directories.front()));
                                 return Result<void>();
                               }});
  }
  void TearDown() override {
    enforcer_.reset();
    source_.reset();
    if (!tree_) return;
    for (const std::string& directory : tree_->DirectoriesOf(name_)) {
      EXPECT_FALSE(std::filesystem::exists(directory)) << directory;
    }
  }

  Outcome Run(const plan::Limits& limits, const std::function<int()>& body) {
    Outcome outcome;
    WaitingChild child(body);
    if (!enforcer_) {
      auto made = source_->Make();
      EXPECT_TRUE(made) << made.error().message;
      if (!made) return outcome;
      enforcer_ = std::move(*made);
    }
    EXPECT_TRUE(enforcer_->Adopt(child.pid(), ChildRole::kBecomesProgram));
    auto begun = enforcer_->Begin(limits, carried_);
    EXPECT_TRUE(begun) << begun.error().message;
    if (!begun) return outcome;
    loop_->Run([&] {
      child.Go();
      enforcer_->Watch(*loop_, [&] {
        outcome.told = true;
        enforcer_->Kill();
        child.Kill();
      });
    });
    outcome.status = child.Wait();
    // Orphans too.
    while (::waitpid(-1, nullptr, 0) > 0) {
    }
    loop_->Run([&] { outcome.enforced = enforcer_->Finish(); });
    return outcome;
  }

  /// The sandbox's, as the kernel has it.
  std::string Weight() const {
    for (const std::string& directory : tree_->DirectoriesOf(name_)) {
      for (const char* file : {"/cpu.shares", "/cpu.weight"}) {
        std::string text;
        if (std::ifstream(directory + file) >> text) return text;
      }
    }
    return "none";
  }
  static bool IsTenth(std::string_view weight) { return weight == "102" || weight == "10"; }
  /// False: not within ten seconds.
  bool AwaitTenth() const {
    const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!IsTenth(Weight())) {
      if (std::chrono::steady_clock::now() > late) return false;
      (void)::usleep(1000);
    }
    return true;
  }

  const std::string name_ = MakeId("sbx_");
  std::unique_ptr<kernel::CgroupTree> tree_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<EnforcerSource> source_;
  std::unique_ptr<Enforcer> enforcer_;
  std::vector<std::vector<std::string>> recorded_;
  CarriedLimits carried_{};
};

#define PALMSHED_NEEDS(controller) \
  if (!tree_->controllers().controller) GTEST_SKIP() << "no controller: " #controller

TEST_F(GroupEnforcerTest, WithinTheLimitsNothingIsSaid) {
  PALMSHED_NEEDS(memory);
  const Outcome outcome = Run({.cpu_time = Millis(20'000), .memory = 64_MiB, .pids = 10},
                              [] { return UseMemory(30) + Burn(250); });
  EXPECT_TRUE(ExitedWith(outcome.status, 0));
  EXPECT_FALSE(outcome.told);
  EXPECT_FALSE(outcome.enforced.hit);
  EXPECT_THAT(outcome.enforced.evidence, IsEmpty());
  ASSERT_TRUE(outcome.enforced.cpu_time);
  EXPECT_GE(*outcome.enforced.cpu_time, Millis(45));
  ASSERT_TRUE(outcome.enforced.peak_memory) << "there was time for a sample";
  EXPECT_GE(*outcome.enforced.peak_memory, 28_MiB);
  EXPECT_LE(*outcome.enforced.peak_memory, 40_MiB);
}

// C005, C089
TEST_F(GroupEnforcerTest, CpuTimeOfTheWholeTreeEndsIt) {
  PALMSHED_NEEDS(cpu_time);
  const Outcome outcome = Run({.cpu_time = Millis(300)}, [] {
    for (int i = 0; i < 3; ++i) {
      if (::fork() == 0) {
        (void)::setsid();
        return Burn(20'000);
      }
    }
    return Burn(20'000);
  });
  EXPECT_TRUE(Killed(outcome.status));
  EXPECT_TRUE(outcome.told);
  ASSERT_TRUE(outcome.enforced.hit);
  EXPECT_EQ(outcome.enforced.hit->cause, Cause::kCpuTime);
  EXPECT_EQ(outcome.enforced.hit->limit, 300U);
  EXPECT_GE(outcome.enforced.hit->observed, 300U);
  EXPECT_LE(outcome.enforced.hit->observed, 400U) << "50 ms, and as much for a busy machine";
  EXPECT_EQ(carried_.cpu_seconds, 2U) << "the budget, rounded up, and a second";
}

TEST_F(GroupEnforcerTest, CpuTimeOfOrphansEndsIt) {
  PALMSHED_NEEDS(cpu_time);
  const Outcome outcome =
      Run({.cpu_time = Millis(100)}, [] { return kernel::BurnInOrphan(20'000); });
  EXPECT_TRUE(Killed(outcome.status));
  ASSERT_TRUE(outcome.enforced.hit);
  EXPECT_EQ(outcome.enforced.hit->cause, Cause::kCpuTime);
  EXPECT_LE(outcome.enforced.hit->observed, 150U);
}

TEST_F(GroupEnforcerTest, SleepIsFree) {
  PALMSHED_NEEDS(cpu_time);
  const Outcome outcome = Run({.cpu_time = Millis(100)}, [] {
    (void)::usleep(300'000);  // Longer than the budget, which is what is under test.
    return 0;
  });
  EXPECT_TRUE(ExitedWith(outcome.status, 0));
  EXPECT_FALSE(outcome.enforced.hit);
}

TEST_F(GroupEnforcerTest, BudgetUsedUpAtTheVeryEndIsFoundThen) {
  PALMSHED_NEEDS(cpu_time);
  auto enforcer = source_->Make();
  ASSERT_TRUE(enforcer);
  WaitingChild child([] { return Burn(60); });
  ASSERT_TRUE((*enforcer)->Adopt(child.pid(), ChildRole::kBecomesProgram));
  ASSERT_TRUE((*enforcer)->Begin({.cpu_time = Millis(50)}, carried_));
  child.Go();
  EXPECT_TRUE(ExitedWith(child.Wait(), 0)) << "nobody watched";
  const Enforced enforced = (*enforcer)->Finish();
  ASSERT_TRUE(enforced.hit);
  EXPECT_EQ(enforced.hit->cause, Cause::kCpuTime);
}

TEST_F(GroupEnforcerTest, MemoryEndsIt) {
  PALMSHED_NEEDS(memory);
  const Outcome outcome = Run({.memory = 64_MiB}, [] { return UseMemory(300); });
  EXPECT_TRUE(Killed(outcome.status));
  ASSERT_TRUE(outcome.enforced.hit);
  EXPECT_EQ(outcome.enforced.hit->cause, Cause::kMemory);
  EXPECT_EQ(outcome.enforced.hit->limit, Count(64_MiB));
  EXPECT_EQ(outcome.enforced.peak_memory, 64_MiB);
  EXPECT_THAT(outcome.enforced.evidence, Contains(Pair("oom", Gt(0))));
  EXPECT_THAT(outcome.enforced.evidence, Contains(Pair("failcnt", Gt(0))));
}

// C026
TEST_F(GroupEnforcerTest, MemoryOfAChildEndsTheWholeTree) {
  PALMSHED_NEEDS(memory);
  const Outcome outcome = Run({.memory = 64_MiB}, [] {
    if (::fork() == 0) ::_exit(UseMemory(300));
    return ::pause();
  });
  EXPECT_TRUE(Killed(outcome.status)) << "its parent did nothing";
  ASSERT_TRUE(outcome.enforced.hit);
  EXPECT_EQ(outcome.enforced.hit->cause, Cause::kMemory);
}

// C026
TEST_F(GroupEnforcerTest, MemoryOfAChildIsNotHiddenByAParentThatExitsWell) {
  PALMSHED_NEEDS(memory);
  auto enforcer = source_->Make();
  ASSERT_TRUE(enforcer);
  WaitingChild child([] {
    const pid_t hungry = ::fork();
    if (hungry == 0) ::_exit(UseMemory(300));
    (void)::waitpid(hungry, nullptr, 0);
    return 0;
  });
  ASSERT_TRUE((*enforcer)->Adopt(child.pid(), ChildRole::kBecomesProgram));
  ASSERT_TRUE((*enforcer)->Begin({.memory = 64_MiB}, carried_));
  child.Go();
  (void)child.Wait();
  const Enforced enforced = (*enforcer)->Finish();
  ASSERT_TRUE(enforced.hit);
  EXPECT_EQ(enforced.hit->cause, Cause::kMemory);
}

// The OOM killer spares a vfork child, whose memory is its parent's: its execve(2) fails instead.
TEST_F(GroupEnforcerTest, ProgramThatCannotEvenStartHasMetTheLimit) {
  PALMSHED_NEEDS(memory);
  const Outcome outcome = Run({.memory = 1_MiB}, [] {
    static std::array<char, 100'000> text;
    text.fill('x');
    text.back() = 0;
    std::array<char*, 20> arguments{};
    std::fill(arguments.begin(), arguments.end() - 1, text.data());
    char* none = nullptr;
    (void)::execve("/bin/true", arguments.data(), &none);
    return 7;
  });
  EXPECT_FALSE(ExitedWith(outcome.status, 0));
  ASSERT_TRUE(outcome.enforced.hit);
  EXPECT_EQ(outcome.enforced.hit->cause, Cause::kMemory);
}

// C079
TEST_F(GroupEnforcerTest, PageCacheIsNeitherLimitNorPeak) {
  PALMSHED_NEEDS(memory);
  const std::string path = "/var/tmp/" + name_;
  const Outcome outcome =
      Run({.memory = 128_MiB}, [&] { return kernel::UseFile(path.c_str(), 600); });
  EXPECT_TRUE(ExitedWith(outcome.status, 0));
  EXPECT_FALSE(outcome.enforced.hit);
  EXPECT_LT(outcome.enforced.peak_memory.value_or(Bytes{}), 16_MiB);
}

TEST_F(GroupEnforcerTest, RefusedForksAreEvidenceAndNoEnd) {
  PALMSHED_NEEDS(pids);
  const Outcome outcome = Run({.pids = 8}, [] {
    for (int i = 0; i < 20; ++i) {
      const pid_t pid = ::fork();
      if (pid < 0) return i;
      if (pid == 0) ::_exit(::usleep(200'000));
    }
    return 100;
  });
  EXPECT_TRUE(ExitedWith(outcome.status, 7));
  EXPECT_FALSE(outcome.told);
  EXPECT_FALSE(outcome.enforced.hit);
  EXPECT_THAT(outcome.enforced.evidence, Contains(Pair(std::string(kPidsRefused), 1)));
}

TEST_F(GroupEnforcerTest, QuotaThrottlesAndDoesNotEndIt) {
  PALMSHED_NEEDS(cpu_quota);
  const Outcome outcome =
      Run({.cpu_time = Millis(1000), .cpu_quota = 0.02}, [] { return Burn(20); });
  EXPECT_TRUE(ExitedWith(outcome.status, 0));
  EXPECT_FALSE(outcome.enforced.hit);
  EXPECT_THAT(outcome.enforced.evidence, Contains(Key("throttled_periods")));
}

// C073
TEST_F(GroupEnforcerTest, CountsATenthOnceItHasRunForAWhile) {
  PALMSHED_NEEDS(cpu_quota);
  const Outcome outcome = Run({.pids = 10}, [&] { return AwaitTenth() ? 0 : 1; });
  EXPECT_TRUE(ExitedWith(outcome.status, 0));
  EXPECT_THAT(Weight(), AnyOf("1024", "100")) << "again, for the next";
}

// C073
TEST_F(GroupEnforcerTest, CountsInFullWhileAnotherHasJustBegun) {
  PALMSHED_NEEDS(cpu_quota);
  auto older = source_->Make();
  auto younger = source_->Make();
  ASSERT_TRUE(older && younger);
  const std::string usual = Weight();
  WaitingChild child([] { return ::pause(); });
  ASSERT_TRUE((*older)->Adopt(child.pid(), ChildRole::kBecomesProgram));
  ASSERT_TRUE((*older)->Begin({.pids = 10}, carried_));
  loop_->Run([&] { (*older)->Watch(*loop_, [] {}); });
  ASSERT_TRUE(AwaitTenth());
  ASSERT_TRUE((*younger)->Begin({.pids = 10}, carried_));
  EXPECT_EQ(Weight(), usual);
  younger->reset();
  EXPECT_TRUE(IsTenth(Weight()));
  child.Kill();
  (void)child.Wait();
  loop_->Run([&] { (void)(*older)->Finish(); });
  EXPECT_EQ(Weight(), usual);
}

// C082
TEST_F(GroupEnforcerTest, LimitsAndCountsAreThoseOfOneExecution) {
  PALMSHED_NEEDS(memory);
  EXPECT_TRUE(Run({.memory = 64_MiB}, [] { return UseMemory(200); }).enforced.hit);
  ASSERT_TRUE(enforcer_->Reusable());
  EXPECT_FALSE(Run({}, [] { return UseMemory(200); }).enforced.hit);
  EXPECT_FALSE(Run({.memory = 256_MiB}, [] { return UseMemory(200); }).enforced.hit);
  const Outcome last = Run({.memory = 64_MiB}, [] { return UseMemory(200); });
  ASSERT_TRUE(last.enforced.hit);
  EXPECT_EQ(last.enforced.hit->limit, Count(64_MiB));
}

TEST_F(GroupEnforcerTest, GroupIsWrittenDownOnceBeforeItIsMade) {
  EXPECT_THAT(recorded_, IsEmpty());
  const auto first = source_->Make();
  const auto second = source_->Make();
  ASSERT_TRUE(first && second);
  ASSERT_EQ(recorded_.size(), 1U);
  EXPECT_THAT(recorded_.front(), ElementsAreArray(tree_->DirectoriesOf(name_)));
  EXPECT_TRUE(std::filesystem::exists(recorded_.front().front())) << "the control";
}

TEST_F(GroupEnforcerTest, CoversWhatTheTreeHasControllersFor) {
  const plan::Limits all{
      .cpu_time = Millis(1), .cpu_quota = 1, .memory = 1_MiB, .pids = 1, .disk = 1_MiB};
  const plan::Limits covered = source_->Covered(all);
  EXPECT_EQ(covered.memory != Bytes{}, tree_->controllers().memory);
  EXPECT_EQ(covered.pids != 0, tree_->controllers().pids);
  EXPECT_EQ(covered.cpu_quota != 0, tree_->controllers().cpu_quota);
  EXPECT_EQ(covered.cpu_time != Millis(0), tree_->controllers().cpu_time);
  EXPECT_EQ(covered.disk, Bytes{});
}

}  // namespace
}  // namespace palmshed::backends::native
