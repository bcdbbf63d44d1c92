// Children that bear program after program.
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/eventually.h"
#include "support/helper_fixture.h"

namespace palmshed::testing {
namespace {

using child::ChildRole;
using child::Step;
using tests::Eventually;

constexpr ChildRole kRoles[] = {ChildRole::kBearsProgram, ChildRole::kBearsAtOnce};

class HelperBearer : public HelperTest {
 protected:
  Armed Arm(ChildRole role = ChildRole::kBearsProgram) { return sandbox_->Arm(role); }
  Started Give(const Armed& armed, const std::string& command, bool directly = true) {
    return sandbox_->Start({.argv = {"/bin/sh", "-c", command},
                            .armed = armed.sequence,
                            .socket = directly ? armed.socket.get() : -1});
  }
  Finished Run(const Armed& armed, const std::string& command, bool directly = true) {
    Started started = Give(armed, command, directly);
    return sandbox_->Finish(&started);
  }
  /// Without a signal scope a program could end what is to bear the next. Without /proc nobody
  /// knows whether it has left something, so everything in its scope is ended.
  static bool BearsMany() {
    const std::uint32_t flags = GetParam().init_flags;
    return (flags & child::kInitSignalScope) != 0 && (flags & child::kInitNoProc) == 0;
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, HelperBearer, ::testing::ValuesIn(kEveryMode), ModeName);

TEST_P(HelperBearer, BearsOneProgramAfterAnother) {
  for (const ChildRole role : kRoles) {
    const Armed armed = Arm(role);
    ASSERT_TRUE(armed.pidfd.valid() && armed.socket.valid());
    for (int round = 0; round < 20; ++round) {
      const Finished finished =
          Run(armed, "echo $PPID; exit " + std::to_string(round), round % 2 == 0);
      EXPECT_TRUE(finished.exited_with(round));
      EXPECT_EQ(finished.out, "1\n") << "the parent is init, as of any other";
      EXPECT_EQ(finished.reply.waits_again != 0, BearsMany());
      if (!BearsMany()) break;
    }
    EXPECT_EQ(IsReadable(armed.pidfd.get(), BearsMany() ? 0 : kDeadlineMs), !BearsMany());
  }
}

// Seen by what runs beside it: init, the bearer, what it bears.
TEST_P(HelperBearer, BearsTheFirstBeforeItIsWantedIfItIsTo) {
  if ((GetParam().init_flags & child::kInitNoProc) != 0) return;
  const auto others = [&] { return sandbox_->Shell("set -- /proc/[0-9]*; exit $(($# - 1))"); };
  EXPECT_TRUE(others().exited_with(1));
  const Armed later = Arm();
  for (int round = 0; round < 5; ++round) EXPECT_TRUE(others().exited_with(2));
  sandbox_->Disarm(later);
  ASSERT_TRUE(sandbox_->WaitDisarmed(later.sequence));
  const Armed at_once = Arm(ChildRole::kBearsAtOnce);
  EXPECT_TRUE(Eventually([&] { return others().exited_with(3); }));
}

TEST_P(HelperBearer, WhatItBearsIsLikeAnyOtherExecution) {
  const std::string facts =
      "ls /proc/self/fd; id; umask; pwd; ulimit -a; "
      "grep -E '^(Sig|Shd|Cap|NoNew|Seccomp:|Uid|Gid)' /proc/self/status; exit 3";
  const Finished plain = sandbox_->Shell(facts);
  Armed armed = Arm();
  for (int round = 0; round < 5; ++round) {
    const Finished borne = Run(armed, facts);
    EXPECT_TRUE(borne.exited_with(3));
    EXPECT_EQ(borne.out, plain.out);
    EXPECT_EQ(borne.err, plain.err);
    if (borne.reply.waits_again == 0) armed = Arm();
  }
}

TEST_P(HelperBearer, GoesWithWhatIsKilledAndIsReplaced) {
  for (int round = 0; round < 5; ++round) {
    const Armed armed = Arm();
    Started started = Give(armed, "sleep 1000 & echo up; exec sleep 1000");
    EXPECT_EQ(ReadUntil(started.out.get(), "up\n"), "up\n");
    sandbox_->Kill(started.sequence, SIGKILL, true, armed.sequence);
    const Finished finished = sandbox_->Finish(&started);
    EXPECT_TRUE(finished.killed_by(SIGKILL));
    EXPECT_EQ(finished.reply.waits_again == 0, true);
    EXPECT_TRUE(IsReadable(armed.pidfd.get(), kDeadlineMs));
  }
}

TEST_P(HelperBearer, EndsWhatAProgramLeavesBehind) {
  const Armed armed = Arm();
  Started started = Give(armed, "sleep 1000 & echo $!; exit 2");
  const Finished finished = sandbox_->Finish(&started);
  EXPECT_TRUE(finished.exited_with(2));
  EXPECT_EQ(finished.reply.killed_leftovers, 1U);
  EXPECT_TRUE(Run(Arm(), "exit 5").exited_with(5));
}

TEST_P(HelperBearer, SignalsReachWhatItBears) {
  const Armed armed = Arm();
  Started started = Give(armed, "trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done");
  EXPECT_EQ(ReadUntil(started.out.get(), "up\n"), "up\n");
  sandbox_->Kill(started.sequence, SIGTERM, false, armed.sequence);
  EXPECT_TRUE(sandbox_->Finish(&started).exited_with(9));
}

// At whatever moment: what is still on its way to it, too.
TEST_P(HelperBearer, MayBeKilledAsItStarts) {
  Armed armed = Arm();
  for (int round = 0; round < 100; ++round) {
    Started started = Give(armed, "sleep 1000");
    sandbox_->Kill(started.sequence, SIGKILL, round % 2 == 0, armed.sequence);
    const auto answer = sandbox_->WaitAnswer(started.sequence, armed.sequence);
    ASSERT_TRUE(answer) << round;
    const child::InitReply* const end = &answer->reply;
    if (end->answer == child::InitAnswer::kEnded) {
      EXPECT_EQ(end->wait_status, SIGKILL);
    }
    if (end->answer != child::InitAnswer::kEnded || end->waits_again == 0) armed = Arm();
    ASSERT_TRUE(armed.pidfd.valid());
  }
  EXPECT_TRUE(Run(armed, "exit 6").exited_with(6));
}

TEST_P(HelperBearer, SaysWhyAProgramCannotStartAndBearsTheNext) {
  Armed armed = Arm();
  for (int round = 0; round < 3; ++round) {
    Started started = sandbox_->Start(
        {.argv = {"/no/such/program"}, .armed = armed.sequence, .socket = armed.socket.get()});
    const Finished finished = sandbox_->Finish(&started);
    EXPECT_TRUE(finished.failed_at(Step::kExec, ENOENT));
    if (finished.reply.waits_again == 0) armed = Arm();
  }
  EXPECT_TRUE(Run(armed, "exit 7").exited_with(7));
}

TEST_P(HelperBearer, TakesAPayloadInAFile) {
  Armed armed = Arm();
  for (int round = 0; round < 3; ++round) {
    Started started = sandbox_->Start({.argv = {"/bin/sh", "-c", "exit $#", "x", "1", "2"},
                                       .payload_in_file = true,
                                       .armed = armed.sequence,
                                       .socket = armed.socket.get()});
    const Finished finished = sandbox_->Finish(&started);
    EXPECT_TRUE(finished.exited_with(2));
    if (finished.reply.waits_again == 0) armed = Arm();
  }
}

TEST_P(HelperBearer, ReadsItsOwnInput) {
  const Armed armed = Arm();
  Started started = sandbox_->Start({.argv = {"/bin/sh", "-c", "read line; echo got $line"},
                                     .stdin_pipe = true,
                                     .armed = armed.sequence,
                                     .socket = armed.socket.get()});
  ASSERT_EQ(::write(started.in.get(), "it\n", 3), 3);
  EXPECT_EQ(sandbox_->Finish(&started).out, "got it\n");
}

// Whoever has given it up gets it back with the first answer.
TEST_P(HelperBearer, SocketComesBackWithWhatCameByWayOfInit) {
  Armed armed = Arm();
  EXPECT_FALSE(Run(armed, "exit 0").socket.valid());
  if (!BearsMany()) return;
  armed.socket.reset();
  for (int round = 0; round < 3; ++round) {
    Finished passed_on = Run(armed, "exit 1", false);
    EXPECT_TRUE(passed_on.exited_with(1));
    armed.socket = std::move(passed_on.socket);
    ASSERT_TRUE(armed.socket.valid());
    const Finished direct = Run(armed, "exit 2");
    EXPECT_TRUE(direct.exited_with(2));
    EXPECT_FALSE(direct.socket.valid());
  }
}

TEST_P(HelperBearer, SaysThatItHasDied) {
  for (const ChildRole role : kRoles) {
    const Armed armed = Arm(role);
    ASSERT_EQ(::kill(PidOf(armed.pidfd.get()), SIGKILL), 0);
    EXPECT_TRUE(sandbox_->WaitDisarmed(armed.sequence));
    EXPECT_TRUE(Run(armed, "exit 1", false).failed_at(Step::kArm, ESRCH));
    EXPECT_TRUE(Run(Arm(role), "exit 8").exited_with(8));
  }
}

TEST_P(HelperBearer, GoesWhenItIsNotNeeded) {
  const Armed fresh = Arm();
  const Armed ahead = Arm(ChildRole::kBearsAtOnce);
  const Armed used = Arm();
  EXPECT_TRUE(Run(used, "exit 0").exited_with(0));
  for (const Armed* armed : {&fresh, &ahead, &used}) {
    sandbox_->Disarm(*armed);
    EXPECT_TRUE(IsReadable(armed->pidfd.get(), kDeadlineMs));
    EXPECT_TRUE(Run(*armed, "exit 1", false).failed_at(Step::kArm, ESRCH));
  }
  EXPECT_TRUE(sandbox_->Shell("exit 7").exited_with(7));
}

TEST_P(HelperBearer, EndsWithTheSandbox) {
  const Armed armed = Arm();
  EXPECT_TRUE(Run(armed, "exit 0").exited_with(0));
  sandbox_->CloseSocket();
  EXPECT_TRUE(IsReadable(armed.pidfd.get(), kDeadlineMs));
}

TEST_P(HelperBearer, OthersRunMeanwhile) {
  const Armed armed = Arm();
  Started running = Give(armed, "read line; exit 6");
  for (int round = 0; round < 10; ++round) {
    EXPECT_TRUE(sandbox_->Shell("sleep 100 & exit 4").exited_with(4));
  }
  const Armed other = Arm();
  EXPECT_TRUE(Run(other, "sleep 100 & exit 5").exited_with(5));
  EXPECT_TRUE(sandbox_->Finish(&running).exited_with(6)) << "its input is /dev/null";
}

class HelperBearerOfMany : public HelperBearer {};
INSTANTIATE_TEST_SUITE_P(Users, HelperBearerOfMany, ::testing::ValuesIn(kEveryUser), ModeName);

TEST_P(HelperBearerOfMany, CannotBeReachedByWhatItBears) {
  const Armed armed = Arm();
  EXPECT_TRUE(Run(armed, "exit 0").exited_with(0));
  const std::string others = "for p in $(seq 2 200); do [ $p = $$ ] || kill -";
  for (const char* const signal : {"STOP", "TERM", "KILL"}) {
    const Finished finished = Run(armed, others + signal + " $p 2>/dev/null; done; echo done");
    EXPECT_EQ(finished.out, "done\n");
    EXPECT_TRUE(finished.reply.waits_again != 0);
  }
  EXPECT_FALSE(IsReadable(armed.pidfd.get(), 0));
  EXPECT_TRUE(Run(armed, "exit 4").exited_with(4));
}

}  // namespace
}  // namespace palmshed::testing
