// With real launchers: as root, or where an ordinary user may make namespaces.
#include "backends/native/launchers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "backends/native/host.h"
#include "backends/native/launcher.h"
#include "backends/native/rungs.h"
#include "base/loop.h"
#include "base/worker.h"
#include "workspace/test_tree.h"

namespace palmshed::backends::native {
namespace {

using namespace std::chrono_literals;

class LaunchersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto loop = Loop::Create();
    ASSERT_TRUE(loop);
    loop_ = *std::move(loop);
    auto host = DiscoverHost({.workspace_root = tree_.path()});
    ASSERT_TRUE(host) << host.error().message;
    host_.emplace(*std::move(host));
  }

  bool BecomesIdle(const Launchers& launchers) const {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (launchers.running() != 0 && std::chrono::steady_clock::now() < deadline) {
      loop_->Run([] {});  // As busy as the loop is.
      std::this_thread::yield();
    }
    return launchers.running() == 0;
  }

  workspace::TestTree tree_;
  std::unique_ptr<Loop> loop_;
  Worker worker_;
  std::optional<Host> host_;
};

TEST_F(LaunchersTest, EachKindHasOneFirst) {
  Launchers launchers(loop_.get(), &worker_, 50ms);
  EXPECT_TRUE(launchers.TakeFirst({}));
  EXPECT_FALSE(launchers.TakeFirst({}));
  EXPECT_TRUE(launchers.TakeFirst({.host_network = true}));
}

// A launcher that runs anyway makes it faster.
TEST_F(LaunchersTest, NothingIsFirstAfterALauncher) {
  Launchers launchers(loop_.get(), &worker_, 50ms);
  (void)launchers.For(*host_, {});
  EXPECT_FALSE(launchers.TakeFirst({}));
}

TEST_F(LaunchersTest, OneServesAllOfItsKindUntilItIsIdle) {
  Launchers launchers(loop_.get(), &worker_, 50ms);
  std::optional<Rung> first = launchers.For(*host_, {});
  if (first->refused) GTEST_SKIP() << "no launcher here: " << first->refused->message;
  EXPECT_EQ(launchers.For(*host_, {}).launcher, first->launcher);
  EXPECT_EQ(launchers.running(), 1U);
  const std::weak_ptr<Launcher> watched = first->launcher;
  first.reset();
  EXPECT_TRUE(BecomesIdle(launchers));
  worker_.Finish();
  EXPECT_TRUE(watched.expired());
}

TEST_F(LaunchersTest, OneThatIsInUseStays) {
  Launchers launchers(loop_.get(), &worker_, 1ms);
  Rung used = launchers.For(*host_, {});
  if (used.refused) GTEST_SKIP() << "no launcher here: " << used.refused->message;
  std::optional<Rung> idle = launchers.For(*host_, {.host_network = true});
  ASSERT_EQ(launchers.running(), 2U);
  const std::weak_ptr<Launcher> watched = idle->launcher;
  idle.reset();
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (launchers.running() != 1 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(launchers.running(), 1U) << "the control: the idle one goes";
  EXPECT_EQ(launchers.For(*host_, {}).launcher, used.launcher);
  used = {};
  EXPECT_TRUE(BecomesIdle(launchers));
  EXPECT_NE(launchers.For(*host_, {}).launcher, nullptr) << "and another is started when needed";
}

}  // namespace
}  // namespace palmshed::backends::native
