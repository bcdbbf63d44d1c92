#include "base/schedule.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>
#include <vector>

namespace palmshed {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(Schedule, RunsTasksWhenTheyAreDueAndOffTheCallersThread) {
  // A promise outlives the thread that keeps it, which is not done with it when its future is
  // ready.
  std::vector<int> order;
  std::promise<std::thread::id> last;
  Schedule schedule(1);
  ASSERT_TRUE(schedule.Start());
  const auto now = Schedule::Clock::now();
  schedule.At(now + milliseconds(20), [&] {
    order.push_back(2);
    last.set_value(std::this_thread::get_id());
  });
  schedule.At(now, [&] { order.push_back(1); });
  EXPECT_NE(last.get_future().get(), std::this_thread::get_id());
  EXPECT_EQ(order, (std::vector{1, 2}));
  EXPECT_GE(Schedule::Clock::now(), now + milliseconds(20));
}

TEST(Schedule, OneThatBlocksDoesNotHoldUpTheNext) {
  std::promise<void> release;
  std::promise<void> ran;
  Schedule schedule(2);
  schedule.Now([blocked = release.get_future()] { blocked.wait(); });
  schedule.Now([&] { ran.set_value(); });
  ran.get_future().wait();
  release.set_value();
}

TEST(Schedule, OneThatBlocksDoesNotHoldUpTheNextThatAnIdleThreadWasToTake) {
  std::promise<void> release;
  std::promise<void> ran;
  Schedule schedule(2);
  ASSERT_TRUE(schedule.Start());
  // Its thread is usually idle by then; what is expected holds either way.
  std::this_thread::sleep_for(milliseconds(20));
  const auto due = Schedule::Clock::now() + milliseconds(5);
  schedule.At(due, [blocked = release.get_future()] { blocked.wait(); });
  schedule.At(due, [&] { ran.set_value(); });
  EXPECT_EQ(ran.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  release.set_value();
}

TEST(Schedule, FinishForgetsWhatIsNotDue) {
  Schedule schedule(1);
  bool late = false;
  bool due = false;
  schedule.At(Schedule::Clock::now() + hours(1), [&] { late = true; });
  schedule.Now([&] { due = true; });
  schedule.Finish();
  schedule.Now([&] { late = true; });
  EXPECT_TRUE(due);
  EXPECT_FALSE(late);
}

}  // namespace
}  // namespace palmshed
