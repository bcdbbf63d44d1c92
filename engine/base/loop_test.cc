#include "base/loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>

namespace palmshed {
namespace {

TEST(Loop, RunsTasksInTheOrderInWhichTheyWerePosted) {
  const auto loop = *Loop::Create();
  int last = 0;
  bool ordered = true;
  for (int i = 1; i <= 100; ++i) {
    loop->Post([&, i] { ordered = ordered && last + 1 == i, last = i; });
  }
  loop->Run([] {});
  EXPECT_TRUE(ordered);
  EXPECT_EQ(last, 100);
}

TEST(Loop, FinishRunsWhatHasBeenPosted) {
  const auto loop = *Loop::Create();
  std::promise<void> go;
  std::atomic<int> ran = 0;
  loop->Post([&] { go.get_future().wait(); });
  for (int i = 0; i < 10; ++i) loop->Post([&] { ++ran; });
  go.set_value();
  loop->Finish();
  EXPECT_EQ(ran, 10);
}

TEST(Loop, AfterFinishTasksRunWhereTheyAreHandedOver) {
  const auto loop = *Loop::Create();
  loop->Finish();
  loop->Finish();
  std::thread::id where;
  loop->Post([&] { where = std::this_thread::get_id(); });
  EXPECT_EQ(where, std::this_thread::get_id());
  where = {};
  loop->Run([&] { where = std::this_thread::get_id(); });
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST(Loop, FinishDoesNotWaitForTimers) {
  const auto loop = *Loop::Create();
  std::atomic<bool> expired = false;
  std::unique_ptr<Loop::Timer> timer;
  loop->Run([&] { timer = loop->After(std::chrono::hours(1), [&] { expired = true; }); });
  loop->Finish();
  EXPECT_FALSE(expired);
}

// Whoever hands over a task while the loop is finishing gets it run, there or here.
TEST(Loop, NoTaskIsLostWhileFinishing) {
  for (int round = 0; round < 200; ++round) {
    const auto loop = *Loop::Create();
    std::atomic<int> ran = 0;
    std::thread other([&] {
      for (int i = 0; i < 20; ++i) loop->Run([&] { ++ran; });
    });
    loop->Finish();
    other.join();
    ASSERT_EQ(ran, 20);
  }
}

}  // namespace
}  // namespace palmshed
