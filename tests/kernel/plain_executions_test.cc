// Executions without limits, one after another: whatever an earlier one leaves ready for the next,
// or destroys, none can tell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "palmshed/palmshed.h"
#include "support/eventually.h"
#include "support/filtered_rung.h"
#include "support/kernel_test.h"
#include "support/process.h"

namespace palmshed::tests {
namespace {

using ::testing::HasSubstr;

constexpr int kSeveral = 30;

class PlainExecutions : public KernelTest {
 protected:
  /// Where signal scopes allow it, something besides init and what runs waits for the next program.
  static void AwaitReadiness(Sandbox& sandbox) {
    const auto processes = [&] { return ExecShell(sandbox, "set -- /proc/[0-9]*; echo $#"); };
    EXPECT_THAT(processes(), ExitedWith(0, "2\n")) << "the control: nothing has run yet";
    if (!HasLandlockScopes()) return;
    EXPECT_TRUE(Eventually([&] { return processes().out.bytes == "3\n"; }));
  }
  static void ExpectUsable(Sandbox& sandbox) {
    EXPECT_THAT(ExecShell(sandbox, "cat; echo err >&2", {.stdin_bytes = "in\n"}),
                ExitedWith(0, "in\n"));
  }
};

/// What a program can see of itself, but for its number. The shell asks for itself, by builtins.
constexpr char kSelf[] = R"(
  ulimit -a; ulimit -aH; umask; pwd; env | sort
  cd /proc/$$/fd && echo *
  while read name value; do
    case $name in SigPnd:|SigBlk:|SigIgn:|SigCgt:|Shd*|Cap*|NoNew*|Seccomp*|PPid:|Uid:|Gid:|Groups:|Threads:) echo $name $value;; esac
  done < /proc/$$/status
  read pid name state parent group session terminal rest < /proc/$$/stat
  [ $group = $$ ] && [ $session = $$ ] && echo leads a session, terminal $terminal
  while read line; do echo $line; done < /proc/$$/cgroup
)";

TEST_F(PlainExecutions, LaterOnesAreLikeTheFirst) {
  Sandbox fresh = MakeSandbox();
  const ExecResult first = ExecShell(fresh, kSelf);
  EXPECT_THAT(first.out.bytes, HasSubstr("leads a session"));
  Sandbox sandbox = MakeSandbox();
  AwaitReadiness(sandbox);
  for (int i = 0; i < kSeveral; ++i) {
    const ExecResult later = ExecShell(sandbox, kSelf);
    ASSERT_EQ(later.out.bytes, first.out.bytes);
    EXPECT_EQ(later.err.bytes, first.err.bytes);
  }
}

TEST_F(PlainExecutions, EachCanFollowAnyOther) {
  Sandbox sandbox = MakeSandbox();
  AwaitReadiness(sandbox);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(ExecShell(sandbox, "exit 3").exit_code, 3);
    EXPECT_THAT(ExecShell(sandbox, "kill -9 $$"), EndedBy(Cause::kSignaled));
    EXPECT_THAT(ExecShell(sandbox, "sleep 99 & kill -9 -1; kill -STOP -1; echo x"),
                ExitedWith(0, "x\n"));
    ExpectUsable(sandbox);
    EXPECT_THAT(ExecShell(sandbox, "setsid sleep 99 >/dev/null 2>&1 & echo x"),
                ExitedWith(0, "x\n"));
    ExpectUsable(sandbox);
    EXPECT_THAT(ExecShell(sandbox, "sleep 99", {.timeout = Millis(30)}),
                EndedBy(Cause::kWallTimeout));
    ExpectUsable(sandbox);
    EXPECT_THAT(Exec(sandbox, {"no-such-program"}), EndedBy(Cause::kStartupFailed));
    ExpectUsable(sandbox);
  }
}

TEST_F(PlainExecutions, SeveralAtOnceNeedNotWaitForEachOther) {
  Sandbox sandbox = MakeSandbox();
  AwaitReadiness(sandbox);
  Execution longer = Must(sandbox.Start({"./probe", "stay"}));
  ASSERT_TRUE(AwaitOutput(longer, "ready"));
  for (int i = 0; i < kSeveral; ++i) ExpectUsable(sandbox);
  Must(longer.Cancel());
  EXPECT_TRUE(longer.Wait());
  ExpectUsable(sandbox);
}

// Where RLIMIT_NPROC holds the limit, it counts whatever is of the same user.
TEST_F(PlainExecutions, TakeNothingOfALimitOnProcesses) {
  const auto started = [](Sandbox& sandbox) {
    return Exec(sandbox, {"./probe", "processes", "100"}, {.pids = 16}).out.bytes;
  };
  Sandbox fresh = MakeSandbox();
  const std::string expected = started(fresh);
  EXPECT_THAT(expected, HasSubstr("EAGAIN"));
  Sandbox sandbox = MakeSandbox();
  AwaitReadiness(sandbox);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(started(sandbox), expected);
    ExpectUsable(sandbox);
  }
}

}  // namespace
}  // namespace palmshed::tests
