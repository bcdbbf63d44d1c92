#include "base/worker.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <thread>
#include <utility>

namespace palmshed {
namespace {

/// For as long as it lives no thread can be started: there is no room for a stack of that size.
class NoThreads {
 public:
  NoThreads() {
    (void)pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    (void)pthread_attr_init(&huge);
    (void)pthread_attr_setstacksize(&huge, std::size_t{1} << 47U);
    (void)pthread_setattr_default_np(&huge);
    (void)pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    (void)pthread_setattr_default_np(&before_);
    (void)pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

TEST(Worker, FinishRunsWhatIsQueuedAndLetsGoOfWhatComesLater) {
  Worker worker;
  std::thread::id ran;
  worker.Post([&] { ran = std::this_thread::get_id(); });
  worker.Finish();
  EXPECT_NE(ran, std::thread::id());
  EXPECT_NE(ran, std::this_thread::get_id());
  bool later = false;
  auto held = std::make_shared<int>();
  const std::weak_ptr<int> seen = held;
  worker.Post([&later, held = std::move(held)] { later = true; });
  EXPECT_TRUE(seen.expired());
  EXPECT_FALSE(later);
}

TEST(Worker, TasksWaitUntilThereIsAThread) {
  Worker worker;
  std::promise<std::thread::id> first;
  {
    const NoThreads none;
    worker.Post([&] { first.set_value(std::this_thread::get_id()); });
  }
  auto ran = first.get_future();
  EXPECT_EQ(ran.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  worker.Post([] {});
  EXPECT_NE(ran.get(), std::this_thread::get_id());
}

TEST(Worker, FinishRunsWhatNoThreadCouldBeHadFor) {
  Worker worker;
  bool ran = false;
  const NoThreads none;
  worker.Post([&] { ran = true; });
  EXPECT_FALSE(ran);
  worker.Finish();
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace palmshed
