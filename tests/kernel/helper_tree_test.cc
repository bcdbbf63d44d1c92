// Executions side by side: whose process is whose, and that nothing stays behind.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <vector>

#include "support/helper_fixture.h"

namespace palmshed::testing {
namespace {

constexpr int kMany = 16;

class HelperTree : public HelperTest {
 protected:
  // One main process, one child, two that have left its session, one of them an orphan.
  Started StartFamily() {
    Started started = sandbox_->Start(
        {.argv = {"/bin/sh", "-c",
                  "sleep 1000 & setsid sleep 1000 & (setsid sh -c 'echo up; exec sleep 1000' &); "
                  "wait"}});
    EXPECT_EQ(ReadUntil(started.out.get(), "up\n"), "up\n");
    ++families_;
    EXPECT_EQ(Settled(4 * families_), 4 * families_);
    return started;
  }
  std::size_t Settled(std::size_t expected) {
    return SettledDescendantsOf(sandbox_->init_pid(), expected).size();
  }
  std::size_t Processes() { return DescendantsOf(sandbox_->init_pid()).size(); }

 private:
  std::size_t families_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Modes, HelperTree, ::testing::ValuesIn(kEveryMode), ModeName);

TEST_P(HelperTree, RunsManyAtOnce) {
  std::vector<Started> all;
  for (int i = 0; i < kMany; ++i) {
    all.push_back(
        sandbox_->Start({.argv = {"/bin/sh", "-c", "echo up; read line; exit " + std::to_string(i)},
                         .stdin_pipe = true}));
  }
  for (Started& started : all) EXPECT_EQ(ReadUntil(started.out.get(), "up\n"), "up\n");
  EXPECT_EQ(Processes(), static_cast<std::size_t>(kMany));
  for (int i = kMany - 1; i >= 0; --i) {
    EXPECT_TRUE(sandbox_->Finish(&all[static_cast<std::size_t>(i)]).exited_with(i)) << i;
  }
  EXPECT_EQ(Processes(), 0U);
}

// Requests are taken in the order in which they were sent, whoever carries them out.
TEST_P(HelperTree, NeverLosesAKillThatFollowsAnExec) {
  for (int round = 0; round < 50; ++round) {
    Started started = sandbox_->Start({.argv = {"/bin/sleep", "1000"}});
    sandbox_->Kill(started.sequence, SIGKILL, round % 2 == 0);
    ASSERT_TRUE(sandbox_->Finish(&started).killed_by(SIGKILL)) << round;
  }
}

// C002: leaving the session is no escape; and the other execution's family is left alone.
TEST_P(HelperTree, KillsTheFamilyOfOneExecutionOnly) {
  Started first = StartFamily();
  Started second = StartFamily();
  sandbox_->Kill(first.sequence, SIGKILL, true);
  EXPECT_TRUE(sandbox_->Finish(&first).killed_by(SIGKILL));
  EXPECT_EQ(Processes(), 4U);
  EXPECT_FALSE(IsReadable(second.out.get(), 0));
  sandbox_->Kill(second.sequence, SIGTERM, true);
  EXPECT_TRUE(sandbox_->Finish(&second).killed_by(SIGTERM));
  EXPECT_EQ(Processes(), 0U);
}

TEST_P(HelperTree, SignalsTheMainProcessAlone) {
  Started started = sandbox_->Start(
      {.argv = {"/bin/sh", "-c",
                "trap 'exit 7' TERM; (trap 'echo child' TERM; echo up; read x; sleep 1000) & "
                "wait"}});
  ASSERT_EQ(ReadUntil(started.out.get(), "up\n"), "up\n");
  sandbox_->Kill(started.sequence, SIGTERM, false);
  const Finished finished = sandbox_->Finish(&started);
  EXPECT_TRUE(finished.exited_with(7));
  EXPECT_EQ(finished.out, "");
}

// C001, C008: what a program leaves running ends with it.
TEST_P(HelperTree, KillsLeftovers) {
  const Finished finished = sandbox_->Shell("setsid sleep 1000 & (setsid sleep 1000 &); exit 5");
  EXPECT_TRUE(finished.exited_with(5));
  EXPECT_EQ(finished.reply.killed_leftovers, 1U);
  EXPECT_EQ(Processes(), 0U);
}

TEST_P(HelperTree, KillsLeftoversBesideALiveExecution) {
  Started other = StartFamily();
  const Finished finished = sandbox_->Shell("setsid sleep 1000 & (setsid sleep 1000 &); exit 5");
  EXPECT_EQ(finished.reply.killed_leftovers, 1U);
  EXPECT_EQ(Processes(), 4U);
  const Finished clean = sandbox_->Shell("exit 0");
  EXPECT_EQ(clean.reply.killed_leftovers, 0U);
  EXPECT_EQ(Processes(), 4U);
  sandbox_->Kill(other.sequence, SIGKILL, true);
  EXPECT_TRUE(sandbox_->Finish(&other).killed_by(SIGKILL));
}

// C073: processes that fork as fast as they can do not outrun the end, stopped ones do not evade
// it.
TEST_P(HelperTree, EndsAForkStorm) {
  Started other = StartFamily();
  const Finished finished = sandbox_->Shell(
      "storm() { while :; do (setsid sh -c : &); done; }; storm & storm & "
      "(sh -c 'kill -STOP $$' &); sleep 0.3; exit 6");
  EXPECT_TRUE(finished.exited_with(6));
  EXPECT_EQ(Processes(), 4U);
  sandbox_->Kill(other.sequence, SIGKILL, true);
  EXPECT_TRUE(sandbox_->Finish(&other).killed_by(SIGKILL));
  EXPECT_EQ(Processes(), 0U);
}

// C047: orphans do not stay as zombies, not even while the execution lives.
TEST_P(HelperTree, ReapsOrphans) {
  Started started = sandbox_->Start(
      {.argv =
           {"/bin/sh", "-c",
            "i=0; while [ $i -lt 500 ]; do (sh -c 'true &'); i=$((i+1)); done; echo ok; read x"},
       .stdin_pipe = true});
  EXPECT_EQ(ReadUntil(started.out.get(), "ok\n"), "ok\n");
  sandbox_->Finish(&started);
  EXPECT_EQ(Processes(), 0U);
  EXPECT_TRUE(sandbox_->Shell("exit 9").exited_with(9));
}

TEST_P(HelperTree, ReusesItsThreads) {
  const std::string tasks = "/proc/" + std::to_string(sandbox_->init_pid()) + "/task";
  const auto threads = [&tasks] {
    const std::filesystem::directory_iterator entries(tasks);
    return std::distance(begin(entries), end(entries));
  };
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(sandbox_->Run({.argv = {"/bin/true"}}).exited_with(0));
  EXPECT_LE(threads(), 1 + 1 + 2);  // The main thread, the leader, at most two that follow.
  std::vector<Started> many;
  for (int i = 0; i < kMany; ++i) many.push_back(sandbox_->Start({.argv = {"/bin/true"}}));
  for (Started& started : many) EXPECT_TRUE(sandbox_->Finish(&started).exited_with(0));
  EXPECT_TRUE(sandbox_->Run({.argv = {"/bin/true"}}).exited_with(0));
  EXPECT_LE(threads(), 1 + 1 + 2 + 1);  // And one that may be on its way out.
}

}  // namespace
}  // namespace palmshed::testing
