// Making sandboxes: the launcher survives what goes wrong, and each gets what is its own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/landlock.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include "support/helper_fixture.h"

namespace palmshed::testing {
namespace {

using child::LauncherAnswer;
using child::Step;

constexpr HelperMode kLaunchers[] = {
    kRootMode,
    kOrdinaryMode,
    {"RootSpareNetwork", true, kNoScope, child::kLauncherSpareNetwork},
    {"OrdinarySpareNetwork", false, kNoScope, child::kLauncherSpareNetwork},
    {"RootWithoutUserNamespace", true, kNoScope, child::kLauncherNoUserNamespace},
};

class HelperLauncher : public HelperTest {
 protected:
  pid_t LauncherPid() const { return DescendantsOf(launcher_->stage()).front(); }
  std::size_t Descriptors() const {
    const std::filesystem::directory_iterator fds("/proc/" + std::to_string(LauncherPid()) + "/fd");
    return static_cast<std::size_t>(std::distance(begin(fds), end(fds)));
  }
  // The launcher may be busy with a spare network for a moment, hence the least of several looks.
  std::size_t DescriptorsAtRest() const {
    std::size_t least = Descriptors();
    for (int look = 0; look < 100; ++look) least = std::min(least, Descriptors());
    return least;
  }
};
INSTANTIATE_TEST_SUITE_P(Launchers, HelperLauncher, ::testing::ValuesIn(kLaunchers), ModeName);

TEST_P(HelperLauncher, SurvivesACreateThatFails) {
  const std::size_t descriptors = DescriptorsAtRest();
  for (int round = 0; round < 3; ++round) {
    SandboxSpec spec = Spec();
    spec.workspace = "/no/such/directory";
    const TestSandbox failed(&*launcher_, spec);
    ASSERT_TRUE(failed.created());
    EXPECT_EQ(failed.created()->answer, LauncherAnswer::kCreateFailed);
    EXPECT_EQ(failed.created()->step, Step::kOpenWorkspace);
    EXPECT_EQ(failed.created()->sys_errno, ENOENT);
  }
  EXPECT_EQ(DescriptorsAtRest(), descriptors);
  TestSandbox next(&*launcher_, Spec());
  ASSERT_TRUE(next.ok()) << next.why_not();
  EXPECT_TRUE(next.Run({.argv = {"/bin/true"}}).exited_with(0));
}

TEST_P(HelperLauncher, SurvivesMalformedRequests) {
  const child::CreateRequest bare{child::LauncherOp::kCreate, 77, 0, 0};
  ASSERT_GT(::send(launcher_->socket(), &bare, sizeof bare, MSG_NOSIGNAL), 0);
  const auto reply = launcher_->Receive();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->answer, LauncherAnswer::kCreateFailed);
  EXPECT_EQ(reply->step, Step::kRequest);
  const TestSandbox next(&*launcher_, Spec());
  EXPECT_TRUE(next.ok()) << next.why_not();
}

// The uid is outside the launcher's map: the step between clone and exec that the host can refuse.
TEST_P(HelperLauncher, SurvivesAnIdentityThatIsRefused) {
  if (!GetParam().root || (GetParam().launcher_flags & child::kLauncherNoUserNamespace) != 0) {
    GTEST_SKIP() << "only root gives out uids";
  }
  const std::size_t descriptors = DescriptorsAtRest();
  SandboxSpec spec = Spec();
  spec.host_uid = 4'000'000;
  const TestSandbox failed(&*launcher_, spec);
  ASSERT_TRUE(failed.created());
  EXPECT_EQ(failed.created()->answer, LauncherAnswer::kCreateFailed);
  EXPECT_EQ(failed.created()->step, Step::kSandboxUidMap);
  EXPECT_EQ(DescriptorsAtRest(), descriptors);
  EXPECT_EQ(DescendantsOf(LauncherPid()).size(), 1U);  // The fixture's own init.
  const TestSandbox next(&*launcher_, Spec());
  EXPECT_TRUE(next.ok()) << next.why_not();
}

TEST_P(HelperLauncher, ReportsTheDeathOfAnInit) {
  ASSERT_EQ(::syscall(SYS_pidfd_send_signal, sandbox_->init_pidfd(), SIGKILL, nullptr, 0), 0);
  const auto reply = launcher_->Receive();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->answer, LauncherAnswer::kDied);
  EXPECT_EQ(reply->sequence, sandbox_->created()->sequence);
  EXPECT_TRUE(WIFSIGNALED(reply->wait_status));
}

TEST_P(HelperLauncher, MakesManySandboxes) {
  std::vector<std::unique_ptr<TestSandbox>> all;
  std::set<std::string> networks;
  for (int i = 0; i < 12; ++i) {
    all.push_back(std::make_unique<TestSandbox>(&*launcher_, Spec()));
    ASSERT_TRUE(all.back()->ok()) << i << ": " << all.back()->why_not();
    networks.insert(all.back()->Run({.argv = {"/bin/readlink", "/proc/self/ns/net"}}).out);
  }
  EXPECT_EQ(networks.size(), all.size());
  EXPECT_EQ(networks.count(std::filesystem::read_symlink("/proc/self/ns/net").string() + "\n"), 0U);
}

// C045.
TEST_P(HelperLauncher, GivesEachSandboxALoopback) {
  for (int round = 0; round < 3; ++round) {
    TestSandbox sandbox(&*launcher_, Spec());
    ASSERT_TRUE(sandbox.ok()) << sandbox.why_not();
    sandbox.WriteFile("probe", FileContent(PALMSHED_TEST_PROBE));
    EXPECT_EQ(sandbox.Run({.argv = {"./probe", "loopback"}}).out, "connected\n");
  }
}

TEST_P(HelperLauncher, LeavesTheLoopbackDownUnlessAsked) {
  if ((GetParam().launcher_flags & child::kLauncherSpareNetwork) != 0) {
    GTEST_SKIP() << "a spare namespace always has it up";
  }
  TestSandbox sandbox(&*launcher_, {.flags = 0});
  ASSERT_TRUE(sandbox.ok()) << sandbox.why_not();
  sandbox.WriteFile("probe", FileContent(PALMSHED_TEST_PROBE));
  EXPECT_EQ(sandbox.Run({.argv = {"./probe", "loopback"}}).out, "Network is unreachable\n");
}

TEST_P(HelperLauncher, HoldsLocksUntilInitIsDead) {
  const TempDirectory directory;
  const std::string path = directory.path() + "/lock";
  const auto is_free = [&path] {
    const UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    return ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
  };
  ASSERT_TRUE(is_free());
  {
    UniqueFd lock(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
    SandboxSpec spec = Spec();
    spec.locks = {lock.get()};
    TestSandbox sandbox(&*launcher_, spec);
    ASSERT_TRUE(sandbox.ok()) << sandbox.why_not();
    lock.reset();
    EXPECT_TRUE(sandbox.Run({.argv = {"/bin/true"}}).exited_with(0));
    EXPECT_FALSE(is_free());
  }
  EXPECT_TRUE(is_free());
}

TEST_P(HelperLauncher, AppliesLandlockRules) {
  constexpr std::uint64_t kRead =
      LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
  constexpr std::uint64_t kAll =
      kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG;
  const std::string command =
      "echo x > /workspace/a && echo workspace; echo x > /tmp/a && echo tmp";
  EXPECT_EQ(sandbox_->Shell(command).out, "workspace\ntmp\n");
  SandboxSpec spec = Spec();
  spec.handled_fs = kAll;
  spec.rules = {{kRead, "/usr"},
                {kAll, "/workspace"},
                {kAll, "/no/such", true},
                {LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE, "/dev/null"}};
  TestSandbox confined(&*launcher_, spec);
  ASSERT_TRUE(confined.ok()) << confined.why_not();
  EXPECT_EQ(confined.Shell(command).out, "workspace\n");
  spec.rules.push_back({kRead, "/no/such"});
  const TestSandbox refused(&*launcher_, spec);
  ASSERT_TRUE(refused.ready()) << refused.why_not();
  EXPECT_EQ(refused.ready()->step, Step::kLandlockRule);
  EXPECT_EQ(refused.ready()->detail, 4U);
  EXPECT_EQ(refused.ready()->sys_errno, ENOENT);
}

TEST_P(HelperLauncher, FillsItsStamps) {
  const auto& created = *sandbox_->created();
  for (int i = 1; i < 6; ++i) EXPECT_GE(created.stamps[i], created.stamps[i - 1]) << i;
  EXPECT_GT(created.stamps[0], 0U);
  const auto& ready = *sandbox_->ready();
  for (int i = 1; i < 12; ++i) EXPECT_GE(ready.stamps[i], ready.stamps[i - 1]) << i;
}

TEST(HelperLauncherNetwork, SharesTheHostsOnDemand) {
  LauncherProcess launcher({.root = ::getuid() == 0, .flags = child::kLauncherHostNetwork});
  ASSERT_TRUE(IsReady(launcher)) << Explain(launcher);
  TestSandbox sandbox(&launcher, {.flags = kNoScope});
  ASSERT_TRUE(sandbox.ok()) << sandbox.why_not();
  EXPECT_EQ(sandbox.Run({.argv = {"/bin/readlink", "/proc/self/ns/net"}}).out,
            std::filesystem::read_symlink("/proc/self/ns/net").string() + "\n");
}

}  // namespace
}  // namespace palmshed::testing
