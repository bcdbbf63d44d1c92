#include "backends/native/armed_children.h"

#include <gtest/gtest.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "backends/native/enforcer.h"
#include "base/loop.h"
#include "base/result.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "base/worker.h"
#include "palmshed/error.h"
#include "plan/plan.h"

namespace palmshed::backends::native {
namespace {

class FakeEnforcer final : public Enforcer {
 public:
  FakeEnforcer(std::atomic<int>* adopted, std::atomic<int>* rested,
               const std::atomic<bool>* refuses, const std::atomic<bool>* reusable,
               std::atomic<int>* renewed)
      : adopted_(adopted),
        rested_(rested),
        refuses_(refuses),
        reusable_(reusable),
        renewed_(renewed) {}
  bool NeedsChild() const override { return true; }
  Result<void> Adopt(pid_t /*child*/, ChildRole /*role*/) override {
    if (*refuses_) return std::unexpected(SysError("write", ENOSPC, "cgroup.procs"));
    ++*adopted_;
    return {};
  }
  Result<void> Begin(const plan::Limits& /*limits*/, CarriedLimits& /*carried*/) override {
    return {};
  }
  void Rest() override { ++*rested_; }
  void Watch(Loop& /*loop*/, std::function<void()> /*exceeded*/) override {}
  void Kill() override {}
  Enforced Finish() override { return {}; }
  bool Reusable() const override { return *reusable_; }
  bool Renew() override {
    ++*renewed_;
    return *reusable_;
  }

 private:
  std::atomic<int>* adopted_;
  std::atomic<int>* rested_;
  const std::atomic<bool>* refuses_;
  const std::atomic<bool>* reusable_;
  std::atomic<int>* renewed_;
};

class FakeSource final : public EnforcerSource {
 public:
  explicit FakeSource(bool takes_bearers) : bearers(takes_bearers) {}
  bool NeedsChild() const override { return true; }
  bool TakesBearer() const override { return bearers; }
  plan::Limits Covered(const plan::Limits& limits) const override { return limits; }
  Result<std::unique_ptr<Enforcer>> Make() override {
    ++made;
    return std::make_unique<FakeEnforcer>(&adopted, &rested, &refuses, &reusable, &renewed);
  }

  std::atomic<int> made = 0;
  std::atomic<int> adopted = 0;
  std::atomic<int> rested = 0;
  std::atomic<int> renewed = 0;
  const bool bearers;
  std::atomic<bool> refuses = false;
  std::atomic<bool> reusable = true;
};

/// Plays init: answers when told to.
class ArmedChildrenTest : public ::testing::Test {
 protected:
  explicit ArmedChildrenTest(bool bearers = false)
      : source_(std::make_shared<FakeSource>(bearers)),
        children_(std::make_shared<ArmedChildren>(ArmedChildren::Context{
            .worker = &worker_,
            .sources = {source_},
            .ask = [this](ChildRole role) { return Ask(role); },
            .dismiss = [this](std::uint32_t child) { dismissed_.push_back(child); },
            .in_a_row = std::chrono::hours(1)})) {}
  ~ArmedChildrenTest() override { worker_.Finish(); }

  Result<std::uint32_t> Ask(ChildRole role) {
    const std::lock_guard lock(mu_);
    EXPECT_EQ(role == ChildRole::kBearsProgram, source_->bearers);
    asked_.push_back(++sequence_);
    return sequence_;
  }
  std::size_t asked() {
    const std::lock_guard lock(mu_);
    return asked_.size();
  }
  void AwaitAsked(std::size_t count) {
    while (asked() < count) std::this_thread::yield();
  }
  std::uint32_t NextAsked() {
    const std::lock_guard lock(mu_);
    const std::uint32_t sequence = asked_.front();
    asked_.pop_front();
    return sequence;
  }
  std::uint32_t Answer(bool well = true) {
    const std::uint32_t sequence = NextAsked();
    children_->OnArmed(sequence,
                       well ? Result<ArmedChildren::Armed>({.pidfd = *sys::PidfdOpen(::getpid())})
                            : std::unexpected(SysError("arm", EAGAIN)));
    return sequence;
  }
  /// Until all that was posted so far has run.
  void AwaitWorker() {
    std::atomic<bool> done = false;
    worker_.Post([&done] {
      done = true;
      done.notify_all();
    });
    done.wait(false);
  }

  Worker worker_;
  std::shared_ptr<FakeSource> source_;
  std::mutex mu_;
  std::deque<std::uint32_t> asked_;
  std::uint32_t sequence_ = 0;
  int made_ = 0;
  std::vector<std::uint32_t> dismissed_;
  std::shared_ptr<ArmedChildren> children_;
};

TEST_F(ArmedChildrenTest, TheFirstIsReadyBeforeItIsWanted) {
  children_->Prepare();
  ASSERT_EQ(asked(), 1U);
  const std::uint32_t first = Answer();
  AwaitWorker();
  EXPECT_EQ(source_->adopted, 1);
  const auto child = children_->Take();
  ASSERT_TRUE(child);
  EXPECT_EQ(child->sequence, first);
}

TEST_F(ArmedChildrenTest, OnlyWhoRunsOneRightAfterAnotherIsBusy) {
  children_->Prepare();
  Answer();
  AwaitWorker();
  auto child = children_->Take();
  ASSERT_TRUE(child);
  EXPECT_FALSE(children_->busy());
  children_->Return(*std::move(child), false);
  children_->Prepare();
  EXPECT_EQ(asked(), 1U);
  Answer();
  AwaitWorker();
  child = children_->Take();
  ASSERT_TRUE(child);
  EXPECT_TRUE(children_->busy()) << "one has just ended";
  EXPECT_EQ(asked(), 0U) << "it would be in the way of this one's start";
  children_->Prepare();
  EXPECT_EQ(asked(), 1U);
  children_->Return(*std::move(child), false);
  children_->Prepare();
  EXPECT_EQ(asked(), 1U) << "it is under way already";
}

TEST_F(ArmedChildrenTest, NoneIsMadeBesideOneThatCountsAll) {
  children_->Prepare();
  Answer();
  AwaitWorker();
  auto child = children_->Take();
  ASSERT_TRUE(child);
  EXPECT_FALSE(children_->alone());
  children_->KeepAlone();
  child->counts_all = true;
  EXPECT_TRUE(children_->alone());
  children_->Prepare();
  EXPECT_EQ(asked(), 0U);
  children_->Return(*std::move(child), false);
  EXPECT_FALSE(children_->alone());
  children_->Prepare();
  EXPECT_EQ(asked(), 1U) << "the control";
}

TEST_F(ArmedChildrenTest, SeveralAtOnceAreNeverAlone) {
  children_->Prepare();
  Answer();
  AwaitWorker();
  auto first = children_->Take();
  ASSERT_TRUE(first);
  children_->Prepare();
  Answer();
  AwaitWorker();
  const auto second = children_->Take();
  ASSERT_TRUE(second);
  children_->KeepAlone();
  children_->Prepare();
  EXPECT_GE(asked(), 1U);
}

TEST_F(ArmedChildrenTest, TheReadyRestWhileNothingRuns) {
  children_->Prepare();
  Answer();
  AwaitWorker();
  EXPECT_EQ(source_->rested, 0);
  children_->Rest();
  EXPECT_EQ(source_->rested, 1);
  auto child = children_->Take();
  ASSERT_TRUE(child);
  children_->Return(*std::move(child), false);
  children_->Prepare();
  Answer();
  AwaitWorker();
  EXPECT_EQ(source_->rested, 1) << "something has run meanwhile";
}

TEST_F(ArmedChildrenTest, WhoeverComesWhileNothingRunsRestsAsWell) {
  children_->Rest();
  children_->Prepare();
  Answer();
  AwaitWorker();
  EXPECT_EQ(source_->rested, 1);
}

TEST_F(ArmedChildrenTest, WhoFindsNoneWaitsAndAdoptsItItself) {
  Result<ArmedChildren::Child> child;
  std::thread taker([&] { child = children_->Take(); });
  AwaitAsked(1);
  const std::uint32_t first = Answer();
  taker.join();
  ASSERT_TRUE(child);
  EXPECT_EQ(child->sequence, first);
  EXPECT_EQ(source_->adopted, 1);
}

TEST_F(ArmedChildrenTest, ChildThatDiedAsItWaitedIsReplaced) {
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ASSERT_GT(dead, 0);
  auto pidfd = sys::PidfdOpen(dead);
  ASSERT_EQ(::waitpid(dead, nullptr, 0), dead);
  Result<ArmedChildren::Child> child;
  std::thread taker([&] { child = children_->Take(); });
  AwaitAsked(1);
  const std::uint32_t first = NextAsked();
  children_->OnArmed(first, ArmedChildren::Armed{.pidfd = *std::move(pidfd)});
  AwaitAsked(1);
  const std::uint32_t second = Answer();
  taker.join();
  ASSERT_TRUE(child);
  EXPECT_EQ(child->sequence, second);
  EXPECT_NE(first, second);
}

TEST_F(ArmedChildrenTest, EnforcersAreUsedAgainWhereTheyMayBe) {
  const auto run_five = [this] {
    const int before = source_->made;
    for (int round = 0; round < 5; ++round) {
      children_->Prepare();
      while (asked() > 0) Answer();
      AwaitWorker();
      auto child = children_->Take();
      ASSERT_TRUE(child);
      children_->Return(*std::move(child), false);
    }
    made_ = source_->made - before;
  };
  run_five();
  EXPECT_LE(made_, 2);
  source_->reusable = false;
  run_five();
  EXPECT_GE(made_, 4);
}

TEST_F(ArmedChildrenTest, AsManyStayReadyAsLatelyRanAtOnceButNotMoreThanAFew) {
  std::vector<ArmedChildren::Child> running;
  for (int i = 0; i < 7; ++i) {
    children_->Prepare();
    while (asked() > 0) Answer();
    AwaitWorker();
    auto child = children_->Take();
    ASSERT_TRUE(child);
    running.push_back(*std::move(child));
  }
  for (auto& child : running) children_->Return(std::move(child), false);
  children_->Prepare();
  std::size_t ready = 0;
  while (asked() > 0) {
    Answer();
    ++ready;
  }
  EXPECT_LE(ready, ArmedChildren::kMost);
  EXPECT_GE(ready, ArmedChildren::kMost - 1);
}

TEST_F(ArmedChildrenTest, SaysWhyThereIsNoneAndTriesAgain) {
  Result<ArmedChildren::Child> child;
  std::thread refused([&] { child = children_->Take(); });
  AwaitAsked(1);
  Answer(false);
  refused.join();
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().sys_errno, EAGAIN);
  std::thread served([&] { child = children_->Take(); });
  AwaitAsked(1);
  Answer();
  served.join();
  EXPECT_TRUE(child);
}

TEST_F(ArmedChildrenTest, WhatNobodyAdoptsIsDismissed) {  // C006
  source_->refuses = true;
  Result<ArmedChildren::Child> child;
  std::thread taker([&] { child = children_->Take(); });
  AwaitAsked(1);
  const std::uint32_t first = Answer();
  taker.join();
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().sys_errno, ENOSPC);
  EXPECT_EQ(dismissed_, std::vector<std::uint32_t>{first});
  source_->refuses = false;
  std::thread again([&] { child = children_->Take(); });
  AwaitAsked(1);
  Answer();
  again.join();
  EXPECT_TRUE(child);
}

TEST_F(ArmedChildrenTest, NobodyWaitsForTheDead) {
  Result<ArmedChildren::Child> child;
  std::thread taker([&] { child = children_->Take(); });
  AwaitAsked(1);
  children_->OnDead({.code = ErrorCode::kBackendLost, .message = "gone"});
  taker.join();
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code, ErrorCode::kBackendLost);
  EXPECT_FALSE(children_->Take());
}

TEST_F(ArmedChildrenTest, ManyTakersEachGetOne) {
  std::atomic<int> got = 0;
  std::vector<std::thread> takers;
  takers.reserve(8);
  for (int i = 0; i < 8; ++i) {
    takers.emplace_back([&] {
      auto child = children_->Take();
      if (child) ++got;
    });
  }
  while (got < 8) {
    if (asked() > 0) {
      Answer();
    } else {
      std::this_thread::yield();
    }
  }
  for (auto& taker : takers) taker.join();
  EXPECT_GE(source_->adopted, 8);
}

// ---- those that bear program after program

class BearersTest : public ArmedChildrenTest {
 protected:
  BearersTest() : ArmedChildrenTest(true) {}
  ArmedChildren::Child TakeFirst() {
    children_->Prepare();
    Answer();
    AwaitWorker();
    return *children_->Take();
  }
};

TEST_F(BearersTest, OneIsEnoughForOneProgramAfterAnother) {
  auto child = TakeFirst();
  const std::uint32_t first = child.sequence;
  for (int round = 0; round < 5; ++round) {
    children_->Prepare();
    EXPECT_EQ(asked(), 0U) << "it comes back";
    children_->Return(std::move(child), true);
    if (round % 2 == 0) {
      children_->Prepare();
      AwaitWorker();
    }
    child = *children_->Take();
    EXPECT_EQ(child.sequence, first);
    EXPECT_EQ(source_->renewed, round + 1);
  }
  EXPECT_EQ(source_->adopted, 1);
}

TEST_F(BearersTest, WhatCannotBeRenewedIsDismissedAndReplaced) {
  auto child = TakeFirst();
  const std::uint32_t first = child.sequence;
  source_->reusable = false;
  children_->Return(std::move(child), true);
  children_->Prepare();
  AwaitWorker();
  EXPECT_EQ(dismissed_, std::vector<std::uint32_t>{first});
  ASSERT_EQ(asked(), 1U);
  Answer();
  AwaitWorker();
  EXPECT_NE(children_->Take()->sequence, first);
}

TEST_F(BearersTest, OneThatIsGoneIsNotTaken) {
  auto child = TakeFirst();
  const std::uint32_t first = child.sequence;
  children_->Return(std::move(child), true);
  children_->OnGone(first);
  children_->Prepare();
  ASSERT_EQ(asked(), 1U);
  Answer();
  AwaitWorker();
  EXPECT_NE(children_->Take()->sequence, first);
}

TEST_F(BearersTest, WhoWaitsForOneThatDiedBeforeItWasThereGetsAnother) {
  Result<ArmedChildren::Child> child;
  std::thread taker([&] { child = children_->Take(); });
  AwaitAsked(1);
  const std::uint32_t first = NextAsked();
  children_->OnGone(first);
  AwaitAsked(1);
  const std::uint32_t second = Answer();
  taker.join();
  ASSERT_TRUE(child);
  EXPECT_EQ(child->sequence, second);
}

TEST_F(BearersTest, WhoWaitsTakesTheOneThatComesBackFirst) {
  auto child = TakeFirst();
  const std::uint32_t first = child.sequence;
  Result<ArmedChildren::Child> second;
  std::thread taker([&] { second = children_->Take(); });
  AwaitAsked(1);
  children_->Return(std::move(child), true);
  taker.join();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->sequence, first);
}

TEST_F(BearersTest, MoreThanLatelyRanAtOnceAreDismissed) {
  std::vector<ArmedChildren::Child> running;
  for (int i = 0; i < 6; ++i) {
    std::thread taker([&] { running.push_back(*children_->Take()); });
    AwaitAsked(1);
    Answer();
    taker.join();
  }
  for (auto& child : running) children_->Return(std::move(child), true);
  EXPECT_EQ(dismissed_.size(), running.size() - ArmedChildren::kMost);
}

TEST_F(BearersTest, ItsSocketIsGivenUpWhileNothingRuns) {
  auto child = TakeFirst();
  child.socket = std::make_shared<const UniqueFd>(*sys::Eventfd());
  children_->Return(std::move(child), true);
  children_->Rest();
  EXPECT_EQ(children_->Take()->socket, nullptr);
}

}  // namespace
}  // namespace palmshed::backends::native
