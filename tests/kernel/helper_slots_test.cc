// Where no thread can be made: requests are still answered, and in order.
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>

#include "support/helper_fixture.h"

namespace palmshed::testing {
namespace {

using child::Step;

// Stage, launcher, init's main thread, one slot and one workload: a second slot is one too many.
constexpr std::uint64_t kOneSlot = 5;

// Whether the slot's workload or the second slot gets the last process is a race, so the scene is
// set up anew until the workload has won a few times. Nothing is ever left unanswered, whoever
// wins.
TEST(HelperSlots, ServesControlRequestsWithoutAFreeSlot) {
  if (::getuid() != 0) GTEST_SKIP() << "needs a uid that runs nothing else: give it one as root";
  int served = 0;
  for (int round = 0; round < 1000 && served < 5; ++round) {
    LauncherProcess launcher({.root = false, .max_processes = kOneSlot});
    ASSERT_TRUE(IsReady(launcher)) << Explain(launcher);
    TestSandbox sandbox(&launcher, {});
    ASSERT_TRUE(sandbox.ok()) << sandbox.why_not();
    Started running = sandbox.Start({.argv = {"/bin/sh", "-c", "echo up; exec sleep 1000"}});
    Started refused = sandbox.Start({.argv = {"/bin/true"}});
    if (ReadUntil(running.out.get(), "up\n") == "up\n") {
      EXPECT_TRUE(sandbox.Finish(&refused).failed_at(Step::kThread, EAGAIN)) << round;
      EXPECT_TRUE(sandbox.OpenWorkspace().valid());
      sandbox.Kill(running.sequence, SIGKILL, true);
      EXPECT_TRUE(sandbox.Finish(&running).killed_by(SIGKILL)) << round;
      ++served;
    } else {
      EXPECT_TRUE(sandbox.Finish(&running).failed_at(Step::kClone, EAGAIN)) << round;
      EXPECT_TRUE(sandbox.WaitEnd(refused.sequence)) << round;
    }
    Started next = sandbox.Start({.argv = {"/bin/true"}});
    EXPECT_TRUE(sandbox.WaitEnd(next.sequence)) << round;
  }
  EXPECT_EQ(served, 5);
}

// The control: with room for more, the second execution runs beside the first.
TEST(HelperSlots, RunsTheSecondExecutionWhereThereIsRoom) {
  if (::getuid() != 0) GTEST_SKIP() << "needs a uid that runs nothing else: give it one as root";
  LauncherProcess launcher(
      {.root = false, .max_processes = kOneSlot + 4});  // Threads that wait count too.
  ASSERT_TRUE(IsReady(launcher)) << Explain(launcher);
  TestSandbox sandbox(&launcher, {});
  ASSERT_TRUE(sandbox.ok()) << sandbox.why_not();
  Started running = sandbox.Start({.argv = {"/bin/sleep", "1000"}});
  EXPECT_TRUE(sandbox.Run({.argv = {"/bin/true"}}).exited_with(0));
  sandbox.Kill(running.sequence, SIGKILL, true);
  EXPECT_TRUE(sandbox.Finish(&running).killed_by(SIGKILL));
}

}  // namespace
}  // namespace palmshed::testing
