// Running programs through the helper, as root and as an ordinary user.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "support/helper_driver.h"

namespace palmshed::testing {
namespace {

class HelperExec : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && ::getuid() != 0) GTEST_SKIP() << "needs root";
    launcher_.emplace(LauncherOptions{.root = GetParam()});
    ASSERT_TRUE(launcher_->ready());
    ASSERT_EQ(launcher_->ready()->answer, child::LauncherAnswer::kReady)
        << static_cast<int>(launcher_->ready()->step) << " " << launcher_->ready()->sys_errno;
    sandbox_.emplace(&*launcher_, SandboxSpec{});
    ASSERT_TRUE(sandbox_->ok()) << sandbox_->why_not();
  }

  std::optional<LauncherProcess> launcher_;
  std::optional<TestSandbox> sandbox_;
};

TEST_P(HelperExec, RunsAProgram) {
  const Finished finished = sandbox_->Run({.argv = {"/bin/true"}});
  EXPECT_TRUE(finished.exited_with(0));
  EXPECT_EQ(finished.reply.killed_leftovers, 0U);
}

INSTANTIATE_TEST_SUITE_P(Users, HelperExec, ::testing::Bool(),
                         [](const auto& user) { return user.param ? "Root" : "Ordinary"; });

}  // namespace
}  // namespace palmshed::testing
