// Children that wait in init for their program.
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "support/helper_fixture.h"

namespace palmshed::testing {
namespace {

using child::Step;

class HelperArmed : public HelperTest {
 protected:
  Started Give(const Armed& armed, const std::string& command) {
    return sandbox_->Start({.argv = {"/bin/sh", "-c", command}, .armed = armed.sequence});
  }
  Finished Run(const Armed& armed, const std::string& command) {
    Started started = Give(armed, command);
    return sandbox_->Finish(&started);
  }
  std::string CommandOf(const Armed& armed) {
    std::string name = FileContent("/proc/" + std::to_string(PidOf(armed.pidfd.get())) + "/comm");
    if (!name.empty()) name.pop_back();
    return name;
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, HelperArmed, ::testing::ValuesIn(kEveryMode), ModeName);

TEST_P(HelperArmed, BecomesTheProgram) {
  const Armed armed = sandbox_->Arm();
  ASSERT_TRUE(armed.pidfd.valid());
  EXPECT_EQ(CommandOf(armed), "palmshed-init");
  Started started = sandbox_->Start({.argv = {"/bin/sh", "-c", "echo up; read line; exit 5"},
                                     .stdin_pipe = true,
                                     .armed = armed.sequence});
  EXPECT_EQ(ReadUntil(started.out.get(), "up\n"), "up\n");
  EXPECT_EQ(CommandOf(armed), "sh");
  EXPECT_TRUE(sandbox_->Finish(&started).exited_with(5));
  EXPECT_TRUE(IsReadable(armed.pidfd.get(), kDeadlineMs));
}

TEST_P(HelperArmed, IsLikeAnyOtherExecution) {
  const std::string facts = "ls /proc/self/fd; id -u; umask; pwd; ulimit -n; exit 3";
  const Finished plain = sandbox_->Shell(facts);
  for (int round = 0; round < 20; ++round) {
    const Finished armed = Run(sandbox_->Arm(), facts);
    EXPECT_TRUE(armed.exited_with(3));
    EXPECT_EQ(armed.out, plain.out);
    EXPECT_EQ(armed.err, plain.err);
  }
}

TEST_P(HelperArmed, OthersRunMeanwhile) {
  const Armed armed = sandbox_->Arm();
  for (int round = 0; round < 10; ++round) {
    EXPECT_TRUE(sandbox_->Shell("sleep 100 & exit 4").exited_with(4));
    EXPECT_TRUE(sandbox_->OpenWorkspace().valid());
  }
  EXPECT_EQ(CommandOf(armed), "palmshed-init") << "what ends one execution must not reach it";
  EXPECT_TRUE(Run(armed, "exit 6").exited_with(6));
}

TEST_P(HelperArmed, ManyWaitAtOnceAndEachGetsItsOwn) {
  std::vector<Armed> armed(8);
  for (Armed& one : armed) one = sandbox_->Arm();
  std::vector<Started> started;
  for (std::size_t i = armed.size(); i-- > 0;) {
    started.push_back(Give(armed[i], "read line; exit " + std::to_string(i + 10)));
  }
  for (std::size_t i = 0; i < armed.size(); ++i) {
    const std::size_t given = armed.size() - 1 - i;
    const Finished finished = sandbox_->Finish(&started[i]);
    EXPECT_TRUE(finished.exited_with(static_cast<int>(given) + 10)) << given;
    EXPECT_TRUE(IsReadable(armed[given].pidfd.get(), kDeadlineMs));
  }
}

TEST_P(HelperArmed, TakesAPayloadInAFile) {
  const Armed armed = sandbox_->Arm();
  Started started = sandbox_->Start({.argv = {"/bin/sh", "-c", "exit $#", "x", "1", "2"},
                                     .payload_in_file = true,
                                     .armed = armed.sequence});
  EXPECT_TRUE(sandbox_->Finish(&started).exited_with(2));
}

TEST_P(HelperArmed, SaysWhyTheProgramCannotStart) {
  for (int round = 0; round < 3; ++round) {
    const Armed armed = sandbox_->Arm();
    Started started = sandbox_->Start({.argv = {"/no/such/program"}, .armed = armed.sequence});
    EXPECT_TRUE(sandbox_->Finish(&started).failed_at(Step::kExec, ENOENT));
    EXPECT_TRUE(IsReadable(armed.pidfd.get(), kDeadlineMs));
  }
}

TEST_P(HelperArmed, GoesWhenItIsNotNeeded) {
  const Armed armed = sandbox_->Arm();
  sandbox_->Disarm(armed);
  EXPECT_TRUE(IsReadable(armed.pidfd.get(), kDeadlineMs));
  EXPECT_TRUE(sandbox_->WaitDisarmed(armed.sequence));
  sandbox_->Disarm(armed);
  EXPECT_TRUE(Run(armed, "exit 1").failed_at(Step::kArm, ESRCH));
  EXPECT_TRUE(sandbox_->Shell("exit 7").exited_with(7));
}

TEST_P(HelperArmed, SaysThatItHasDied) {
  const Armed armed = sandbox_->Arm();
  ASSERT_EQ(::kill(PidOf(armed.pidfd.get()), SIGKILL), 0);
  EXPECT_TRUE(sandbox_->WaitDisarmed(armed.sequence));
  EXPECT_TRUE(Run(armed, "exit 1").failed_at(Step::kArm, ESRCH));
}

// Whoever dies while it waits leaves a sandbox that works, and a refusal for its program.
TEST_P(HelperArmed, MayDieWhileItWaits) {
  const Armed armed = sandbox_->Arm();
  ASSERT_EQ(::kill(PidOf(armed.pidfd.get()), SIGKILL), 0);
  ASSERT_TRUE(IsReadable(armed.pidfd.get(), kDeadlineMs));
  const Finished late = Run(armed, "exit 1");
  EXPECT_TRUE(late.failed_at(Step::kArm, ESRCH) || late.killed_by(SIGKILL));
  EXPECT_TRUE(Run(sandbox_->Arm(), "exit 8").exited_with(8));
}

TEST_P(HelperArmed, EndsWithTheSandbox) {
  const Armed armed = sandbox_->Arm();
  sandbox_->CloseSocket();
  EXPECT_TRUE(IsReadable(armed.pidfd.get(), kDeadlineMs));
}

TEST_P(HelperArmed, CarriesLimitsOfItsOwn) {
  const std::string fill = "trap '' XFSZ; head -c 8192 /dev/zero > f; wc -c < f";
  Started limited = sandbox_->Start(
      {.argv = {"/bin/sh", "-c", fill}, .armed = sandbox_->Arm().sequence, .file_bytes = 4096});
  EXPECT_EQ(sandbox_->Finish(&limited).out, "4096\n");
  EXPECT_EQ(sandbox_->Shell(fill).out, "8192\n");
}

// Needs a uid that runs nothing else.
TEST(HelperArmedAlone, ForksNoMoreThanItMay) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to have a uid that runs nothing else";
  LauncherProcess launcher({.root = true});
  ASSERT_TRUE(IsReady(launcher)) << Explain(launcher);
  TestSandbox sandbox(&launcher, {});
  ASSERT_TRUE(sandbox.ok()) << sandbox.why_not();
  const std::string forks =
      "i=0; while [ $i -lt 20 ]; do sleep 100 & i=$((i+1)); done 2>/dev/null; echo all";
  const auto run = [&](std::uint64_t processes) {
    Started started = sandbox.Start({.argv = {"/bin/sh", "-c", forks},
                                     .armed = sandbox.Arm().sequence,
                                     .processes = processes});
    return sandbox.Finish(&started).out;
  };
  EXPECT_EQ(run(8), "");
  EXPECT_EQ(run(40), "all\n");
}

}  // namespace
}  // namespace palmshed::testing
