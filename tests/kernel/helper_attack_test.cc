// Between vfork and exec a workload-to-be shares init's memory and already runs under the uid of
// the other workloads. What protects init is that it is not dumpable: the same attacks on a build
// that stays dumpable succeed. A bearer is a copy of init, and is there all the time. C016, C100.
#include <gtest/gtest.h>

#include "support/helper_fixture.h"

namespace palmshed::testing {
namespace {

// Without a signal scope: its Landlock domain would keep siblings from tracing each other and hide
// what this test is about.
std::string AttackWith(const std::string& helper, const HelperMode& mode, bool bearer) {
  LauncherProcess launcher({.root = mode.root, .flags = mode.launcher_flags, .helper = helper});
  if (!IsReady(launcher)) return Explain(launcher);
  TestSandbox sandbox(&launcher, {.flags = kNoScope});
  if (!sandbox.ok()) return sandbox.why_not();
  sandbox.WriteFile("probe", FileContent(PALMSHED_TEST_PROBE));
  sandbox.WriteFile("victim", "#!/bin/sh\n");
  if (bearer && !sandbox.Arm(child::ChildRole::kBearsProgram).pidfd.valid()) return "no bearer";
  Started attacker = sandbox.Start({.argv = {"./probe", "attack", "victim"}});
  const std::string up = ReadUntil(attacker.out.get(), "up\n");
  Started victim = sandbox.Start({.argv = {"./victim"}});
  const std::string report = sandbox.Finish(&attacker).out;
  sandbox.Finish(&victim);
  return up + report;
}

constexpr char kRefused[] =
    "up\nfound=1\nmem=refused\nmaps=refused\nprocess_vm_readv=refused\n"
    "process_vm_writev=refused\nexe=refused\nfd=refused\npidfd_getfd=refused\nptrace=refused\n";
constexpr char kOpen[] =
    "up\nfound=1\nmem=open\nmaps=open\nprocess_vm_readv=open\nprocess_vm_writev=open\n"
    "exe=open\nfd=open\npidfd_getfd=open\nptrace=open\n";

class HelperAttack : public ::testing::TestWithParam<HelperMode> {};
INSTANTIATE_TEST_SUITE_P(Users, HelperAttack, ::testing::ValuesIn(kEveryUser), ModeName);

TEST_P(HelperAttack, CannotReachInitThroughAWorkloadThatIsBeingStarted) {
  if (const std::string why = WhySkip(GetParam()); !why.empty()) GTEST_SKIP() << why;
  EXPECT_EQ(AttackWith("", GetParam(), false), kRefused);
}

TEST_P(HelperAttack, WouldSucceedIfInitWereDumpable) {
  if (const std::string why = WhySkip(GetParam()); !why.empty()) GTEST_SKIP() << why;
  EXPECT_EQ(AttackWith(PALMSHED_TEST_DUMPABLE_HELPER, GetParam(), false), kOpen);
}

TEST_P(HelperAttack, CannotReachABearer) {
  if (const std::string why = WhySkip(GetParam()); !why.empty()) GTEST_SKIP() << why;
  EXPECT_EQ(AttackWith("", GetParam(), true), kRefused);
  EXPECT_EQ(AttackWith(PALMSHED_TEST_DUMPABLE_HELPER, GetParam(), true), kOpen);
}

TEST_P(HelperAttack, CannotLookIntoInitItself) {
  if (const std::string why = WhySkip(GetParam()); !why.empty()) GTEST_SKIP() << why;
  LauncherProcess launcher({.root = GetParam().root});
  ASSERT_TRUE(IsReady(launcher)) << Explain(launcher);
  TestSandbox sandbox(&launcher, {});
  ASSERT_TRUE(sandbox.ok()) << sandbox.why_not();
  const Finished finished = sandbox.Shell(
      "for f in environ maps mem auxv; do cat /proc/1/$f >/dev/null 2>&1 && echo $f; done; "
      "readlink /proc/1/exe /proc/1/cwd /proc/1/root; ls /proc/1/fd 2>/dev/null; "
      "cat /proc/self/environ >/dev/null && echo control; ls /proc > list; grep -c '^[0-9]' list");
  EXPECT_EQ(finished.out, "control\n3\n");  // Init, the shell and ls.
}

}  // namespace
}  // namespace palmshed::testing
