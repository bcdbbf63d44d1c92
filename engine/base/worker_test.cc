#include "base/worker.h"

#include <gtest/gtest.h>

#include <thread>

namespace palmshed {
namespace {

TEST(Worker, FinishRunsWhatIsQueuedAndLaterTasksRunWhereTheyArePosted) {
  Worker worker;
  std::thread::id first;
  std::thread::id second;
  worker.Post([&] { first = std::this_thread::get_id(); });
  worker.Finish();
  EXPECT_NE(first, std::thread::id());
  EXPECT_NE(first, std::this_thread::get_id());
  worker.Post([&] { second = std::this_thread::get_id(); });
  EXPECT_EQ(second, std::this_thread::get_id());
}

}  // namespace
}  // namespace palmshed
