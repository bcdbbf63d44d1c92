// Who a workload is, inside and on the host.
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <string>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class Identity : public KernelTest {};

TEST_F(Identity, IsAnOrdinaryUserWithoutAnyCapability) {
  Sandbox sandbox = MakeSandbox();
  const std::string status = Exec(sandbox, {"./probe", "attributes"}).out.bytes;
  EXPECT_THAT(status, AllOf(HasSubstr("Uid:\t1000\t1000\t1000\t1000\n"),
                            HasSubstr("Gid:\t1000\t1000\t1000\t1000\n"),
                            HasSubstr("NoNewPrivs:\t1\n"), HasSubstr("Seccomp:\t2\n")));
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
    EXPECT_THAT(status, HasSubstr(std::string(set) + ":\t0000000000000000\n"));
  }
}

// C034
TEST_F(Identity, HasANameAndAHome) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(ExecShell(sandbox, "id -un; id -gn; whoami; hostname"),
              ExitedWith(0, "sandbox\nsandbox\nsandbox\nsandbox\n"));
  EXPECT_THAT(ExecShell(sandbox, "touch ~/x $TMPDIR/x /tmp/x && echo writable; stat -c %u ~"),
              ExitedWith(0, "writable\n1000\n"));
}

// C096
TEST_F(Identity, SupplementaryGroupsOfRootAreDropped) {
  PALMSHED_SKIP_UNLESS(::geteuid() == 0, "only root can give this process groups");
  InForkedProcess([] {
    constexpr gid_t kGroup = 61999;
    ASSERT_EQ(::setgroups(1, &kGroup), 0);
    const TempDir root;
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    ASSERT_THAT(RunOnHost({"id", "-G"}, As::kSelf).out, HasSubstr("61999"));
    EXPECT_THAT(Exec(sandbox, {"id", "-G"}), ExitedWith(0, "1000\n"));
    EXPECT_THAT(Exec(sandbox, {"./probe", "attributes"}).out.bytes,
                ContainsRegex("Groups:\t[ ]?\n"));
  });
}

uid_t HostUidOf(Sandbox& sandbox) {
  const std::string name = UniqueName();
  AddProbe(sandbox, name);
  const Execution running = Must(sandbox.Start({"./" + name, "stay"}));
  EXPECT_TRUE(AwaitOutput(running, "ready"));
  const std::vector<HostProcess> found = FindProcesses(name);
  Must(Execution(running).Cancel());
  return found.size() == 1 ? found.front().uid : 0;
}

TEST_F(Identity, LiveSandboxesOfRootHaveHostUidsOfTheirOwn) {
  PALMSHED_SKIP_UNLESS(::geteuid() == 0, "an ordinary user has only one uid");
  Sandbox first = MakeSandbox(), second = MakeSandbox(), third = MakeSandbox();
  const std::set<uid_t> uids = {HostUidOf(first), HostUidOf(second), HostUidOf(third)};
  EXPECT_EQ(uids.size(), 3U);
  for (const uid_t uid : uids) {
    EXPECT_GE(uid, 1000U);
    EXPECT_NE(uid, 65534U);
  }
}

TEST_F(Identity, SandboxOfAnOrdinaryUserIsThatUserOnTheHost) {
  AsOrdinaryUser([] {
    const TempDir root;
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    EXPECT_EQ(HostUidOf(sandbox), ::geteuid());
    EXPECT_THAT(Exec(sandbox, {"id", "-u"}), ExitedWith(0, "1000\n"));
  });
}

TEST_F(Identity, SetuidProgramsGainNothing) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(ExecShell(sandbox, "cp /usr/bin/id . && chmod 6755 id; ./id -u; ./id -g"),
              ExitedWith(0, "1000\n1000\n"));
  for (const char* program : {"su", "sudo", "newgrp", "mount", "ping"}) {
    if (!OnPath(program)) continue;
    const ExecResult run = ExecShell(sandbox, std::string(program) + " </dev/null");
    EXPECT_THAT(run.out.bytes, Not(HasSubstr("uid=0"))) << program;
  }
}

// A umask or a group of the host program must not open the workspace to others.
TEST_F(Identity, WorkspaceIsClosedToOtherUsersOfTheHost) {
  PALMSHED_SKIP_UNLESS(::geteuid() == 0, "needs another user to look");
  Sandbox sandbox = MakeSandbox();
  Must(sandbox.WriteFile("secret", "canary", 0644));
  const HostRun control = RunOnHost({"find", workspaces(), "-name", "secret"}, As::kSelf);
  EXPECT_THAT(control.out, HasSubstr("secret"));
  EXPECT_THAT(RunOnHost({"find", workspaces(), "-name", "secret"}).out,
              Not(HasSubstr("/secret\n")));
}

}  // namespace
}  // namespace palmshed::tests
