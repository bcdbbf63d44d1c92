#include "backends/native/disk_meter.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "backends/native/disk_gauge.h"
#include "backends/native/fake_tree.h"
#include "base/loop.h"
#include "base/schedule.h"
#include "palmshed/error.h"
#include "palmshed/units.h"
#include "workspace/disk_account.h"
#include "workspace/growing_room.h"

namespace palmshed::backends::native {
namespace {

constexpr std::uint64_t kMiB = 1U << 20;
constexpr std::chrono::seconds kPatience{20};  // No measurement takes longer, so all are quick.

class Meter : public ::testing::Test {
 protected:
  Meter() {
    tree_.Directory("/workspace");
    tree_.Directory("/tmp");
  }
  ~Meter() override {
    meter_->Stop();
    schedule_.Finish();
    loop_->Finish();
  }

  void Write(const std::string& name, std::uint64_t size) const {
    tree_.File("/workspace/" + name, std::string(size, 'x'));
  }
  std::shared_ptr<DiskRun> Begin() {
    auto run = meter_->Begin();
    EXPECT_TRUE(run);
    return std::make_shared<DiskRun>(*run);
  }
  bool IsKilled(const std::shared_ptr<DiskRun>& run, std::chrono::milliseconds patience) {
    const auto told = std::make_shared<std::promise<void>>();
    auto future = told->get_future();
    meter_->Watch(run, *loop_, [told] { told->set_value(); });
    return future.wait_for(patience) == std::future_status::ready;
  }
  DiskVerdict Conclude(const std::shared_ptr<DiskRun>& run, int wait_status) {
    std::promise<DiskVerdict> promise;
    loop_->Run([&] {
      meter_->Conclude(run, wait_status, *loop_,
                       [&](const DiskVerdict& verdict) { promise.set_value(verdict); });
    });
    const DiskVerdict verdict = promise.get_future().get();
    meter_->End(*run);
    return verdict;
  }
  bool Has(const std::string& name) const {
    return std::filesystem::exists(tree_.At("/workspace/" + name));
  }

  const FakeTree tree_;
  std::unique_ptr<Loop> loop_ = *Loop::Create();
  Schedule schedule_{2};
  std::shared_ptr<DiskMeter> meter_ =
      std::make_shared<DiskMeter>(DiskPlace{.workspace = tree_.At("/workspace"),
                                            .tmp = tree_.At("/tmp"),
                                            .owner = ::geteuid(),
                                            .init = -1},
                                  Bytes{4 * kMiB}, schedule_, kPatience);
};

TEST_F(Meter, TellsWhatIsThere) {
  Write("a", kMiB);
  const auto run = Begin();
  EXPECT_GE(run->before.bytes, kMiB);
  EXPECT_LT(run->before.bytes, 2 * kMiB);
  meter_->End(*run);
}

TEST_F(Meter, MeasuresAfterAnExecutionSoThatTheNextNeedNot) {
  // One thread: what is due later runs later.
  Schedule one(1);
  const auto meter = std::make_shared<DiskMeter>(DiskPlace{.workspace = tree_.At("/workspace"),
                                                           .tmp = tree_.At("/tmp"),
                                                           .owner = ::geteuid(),
                                                           .init = -1},
                                                 Bytes{4 * kMiB}, one, kPatience);
  auto run = meter->Begin();
  ASSERT_TRUE(run);
  Write("by-the-program", kMiB);
  meter->End(*run);
  meter->MeasureSoon();
  std::promise<void> measured;
  one.At(Schedule::Clock::now() + std::chrono::milliseconds(50), [&] { measured.set_value(); });
  measured.get_future().wait();
  // Nobody has told of this one, so it is seen only by who looks.
  Write("unseen", kMiB);
  run = meter->Begin();
  ASSERT_TRUE(run);
  EXPECT_GE(run->before.bytes, kMiB);
  EXPECT_LT(run->before.bytes, 2 * kMiB);
  meter->End(*run);
  meter->Stop();
  one.Finish();
}

TEST_F(Meter, KillsWhatWritesMoreAndTakesItBack) {
  Write("old", kMiB);
  const auto run = Begin();
  Write("new", 2 * kMiB);
  EXPECT_FALSE(IsKilled(run, std::chrono::milliseconds(600)));
  Write("more", 2 * kMiB);
  EXPECT_TRUE(IsKilled(run, kPatience));
  const DiskVerdict verdict = Conclude(run, SIGKILL);
  EXPECT_TRUE(verdict.hit);
  EXPECT_TRUE(verdict.rolled_back);
  EXPECT_GT(verdict.amount->bytes, 4 * kMiB);
  EXPECT_TRUE(Has("old"));
  EXPECT_FALSE(Has("new"));
  EXPECT_FALSE(Has("more"));
}

// The clock that files get their times by stands still for milliseconds, and for longer where a
// processor has to wait.
TEST_F(Meter, TakesBackWhatWasWrittenAtTheTimeItBegan) {
  Write("old", kMiB);
  const auto tick = [] {
    timespec now{};
    (void)::clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return now.tv_nsec;
  };
  const auto then = tick();
  while (tick() == then) {
  }
  const auto run = Begin();
  Write("new", 1);
  Write("large", 4 * kMiB);
  EXPECT_TRUE(IsKilled(run, kPatience));
  EXPECT_TRUE(Conclude(run, SIGKILL).rolled_back);
  EXPECT_TRUE(Has("old"));
  EXPECT_FALSE(Has("new"));
}

TEST_F(Meter, TakesNothingBackThatMayBeSomebodyElses) {
  const auto run = Begin();
  const auto other = Begin();
  Write("new", 5 * kMiB);
  EXPECT_TRUE(IsKilled(run, kPatience));
  EXPECT_FALSE(Conclude(run, SIGKILL).rolled_back);
  EXPECT_TRUE(Has("new"));
  meter_->End(*other);
  // A write of the API, too.
  const auto next = Begin();
  Write("api", 1);
  EXPECT_TRUE(IsKilled(next, kPatience));  // It has become more.
  {
    const auto ticket = meter_->Reserve(-1, {.less = {.bytes = 8 * kMiB, .inodes = 8}});
  }
  EXPECT_FALSE(Conclude(next, SIGKILL).rolled_back);
  EXPECT_TRUE(Has("api"));
}

TEST_F(Meter, WhoBeganOverTheQuotaMayDelete) {
  Write("a", 5 * kMiB);
  Write("b", kMiB);
  const auto run = Begin();
  EXPECT_GE(run->before.bytes, 6 * kMiB);
  std::filesystem::remove(tree_.At("/workspace/b"));
  EXPECT_FALSE(IsKilled(run, std::chrono::milliseconds(600)));
  EXPECT_FALSE(Conclude(run, 0).hit);
}

TEST_F(Meter, ATreeThatCannotBeMeasuredEndsWhatRuns) {
  const auto run = Begin();
  std::filesystem::rename(tree_.At("/tmp"), tree_.At("/gone"));
  EXPECT_TRUE(IsKilled(run, kPatience));
  meter_->End(*run);
  EXPECT_FALSE(meter_->Begin());
}

TEST_F(Meter, GrantsTheApiWhatFits) {
  const auto ask = [&](std::uint64_t more, std::uint64_t less) {
    return meter_->Reserve(-1, {.more = workspace::RoomFor(more),
                                .less = {.bytes = less, .inodes = less == 0 ? 0U : 1U},
                                .grows = true});
  };
  auto first = ask(3 * kMiB, 0);
  ASSERT_TRUE(first);
  const auto refused = ask(3 * kMiB, 0);  // While the first is being written.
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kDiskQuotaExceeded);
  Write("a", 3 * kMiB);
  (*first)->Done();
  first->reset();
  EXPECT_FALSE(ask(3 * kMiB, 0));
  EXPECT_TRUE(ask(3 * kMiB, 3 * kMiB));
  std::filesystem::remove(tree_.At("/workspace/a"));
  meter_->NoteRemoval();
  EXPECT_TRUE(ask(3 * kMiB, 0));
}

// Written and promised, it counts twice for as long as it is under way.
TEST_F(Meter, WaitsForWritesThatMayCountTwice) {
  constexpr std::uint64_t kBytes = 3 * kMiB / 2;  // There is room for two, and not for three.
  const workspace::DiskChange change{.more = workspace::RoomFor(kBytes)};
  auto first = meter_->Reserve(-1, change);
  ASSERT_TRUE(first);
  Write("a", kBytes);
  auto second = std::async(std::launch::async, [&] { return meter_->Reserve(-1, change); });
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  (*first)->Done();
  first->reset();
  auto granted = second.get();
  ASSERT_TRUE(granted);
  Write("b", kBytes);
  (*granted)->Done();
  granted->reset();
  EXPECT_FALSE(meter_->Reserve(-1, change));
}

// Of two archives that are being unpacked neither has room for more: one that waited for the end of
// the other, or of its own first part, would wait for ever.
TEST_F(Meter, RefusesWhatGrowsWithoutWaitingForItsLike) {
  workspace::GrowingRoom one(meter_.get(), -1, {});
  workspace::GrowingRoom other(meter_.get(), -1, {});
  ASSERT_TRUE(one.Ensure(3 * kMiB / 2));
  ASSERT_TRUE(other.Ensure(3 * kMiB / 2));
  const Result<void> refused = one.Ensure(3 * kMiB);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kDiskQuotaExceeded);
}

}  // namespace
}  // namespace palmshed::backends::native
