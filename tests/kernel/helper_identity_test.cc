// What a workload is and what it inherits: a table, not an accident.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "support/helper_fixture.h"

namespace palmshed::testing {
namespace {

std::map<std::string, std::string> Lines(const std::string& text, char separator) {
  std::map<std::string, std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    const std::size_t at = line.find(separator);
    if (at == std::string::npos) continue;
    const std::size_t value = line.find_first_not_of(" \t", at + 1);
    lines[line.substr(0, at)] = value == std::string::npos ? "" : line.substr(value);
  }
  return lines;
}

constexpr int kNiced = 7;

// A parent with everything out of the ordinary that it may do without privilege.
void InheritOddities() {
  (void)::umask(0077);
  (void)::setpriority(PRIO_PROCESS, 0, kNiced);
  (void)::syscall(SYS_ioprio_set, 1, 0, (2 << 13) | 6);
  (void)::prctl(PR_SET_TIMERSLACK, 1'000'000);
  (void)::personality(ADDR_NO_RANDOMIZE);
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(0, &first);
  (void)::sched_setaffinity(0, sizeof first, &first);
  (void)::signal(SIGPIPE, SIG_IGN);
  (void)::signal(SIGINT, SIG_IGN);
  (void)::signal(SIGCHLD, SIG_IGN);
  sigset_t all;
  ::sigfillset(&all);
  (void)::sigprocmask(SIG_SETMASK, &all, nullptr);
  const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  (void)!::write(file, "300", 3);
  (void)::dup2(2, 9);
  (void)::dup2(2, 700);
}

// Root drops supplementary groups. An ordinary user's are kept by the kernel, user_namespaces(7);
// the tests of root that stand in for one have none.
bool KeepsGroups() { return ::getuid() != 0 && ::getgroups(0, nullptr) > 0; }

class HelperIdentity : public ::testing::TestWithParam<HelperMode> {
 protected:
  void SetUp() override {
    if (const std::string why = WhySkip(GetParam()); !why.empty()) GTEST_SKIP() << why;
    launcher_.emplace(LauncherOptions{.root = GetParam().root,
                                      .flags = GetParam().launcher_flags,
                                      .before_exec = InheritOddities});
    ASSERT_TRUE(IsReady(*launcher_)) << Explain(*launcher_);
  }
  bool HasUserNamespace() const {
    return (GetParam().launcher_flags & child::kLauncherNoUserNamespace) == 0;
  }
  std::optional<LauncherProcess> launcher_;
};
INSTANTIATE_TEST_SUITE_P(Modes, HelperIdentity, ::testing::ValuesIn(kEveryMode), ModeName);

// C017, C077.
TEST_P(HelperIdentity, InheritsNothing) {
  TestSandbox sandbox(&*launcher_, {.flags = GetParam().init_flags});
  ASSERT_TRUE(sandbox.ok()) << sandbox.why_not();
  sandbox.WriteFile("probe", FileContent(PALMSHED_TEST_PROBE));
  auto seen = Lines(sandbox.Run({.argv = {"./probe", "inherited"}}).out, '=');
  EXPECT_EQ(seen["fds"], "0,1,2");
  EXPECT_EQ(seen["dispositions"], "0");
  EXPECT_EQ(seen["blocked"], "0");
  EXPECT_EQ(seen["ioprio"], "0");
  EXPECT_EQ(seen["policy"], "0");
  EXPECT_EQ(seen["timerslack"], "50000");
  EXPECT_EQ(seen["cpus"], seen["online"]);
  EXPECT_EQ(seen["umask"], "18");  // 022
  EXPECT_EQ(seen["personality"], "0");
  EXPECT_EQ(seen["securebits"], "0");
  EXPECT_EQ(seen["pdeathsig_unset"], "0");
  EXPECT_EQ(seen["session_is_own"], "1");
  EXPECT_EQ(seen["groups"] != "0", KeepsGroups());
  EXPECT_EQ(seen["tty"], "0");
  const std::string id = std::to_string(HasUserNamespace() ? child::kInsideUid : sandbox.uid());
  EXPECT_EQ(seen["uid"], id);
  EXPECT_EQ(seen["gid"], id);
  // Only root can take it back; a test run that is niced further stays where it is.
  const int niced = std::max(kNiced, ::getpriority(PRIO_PROCESS, 0));
  EXPECT_EQ(seen["nice"], std::to_string(GetParam().root ? 0 : niced));
  const bool has_proc = (GetParam().init_flags & child::kInitNoProc) == 0;
  EXPECT_EQ(seen["oom_score_adj"], has_proc ? "0" : "");
}

// C013: whoever started the engine may have closed the standard streams.
TEST_P(HelperIdentity, HasStreamsWhereTheEngineHasNone) {
  LauncherProcess launcher(
      {.root = GetParam().root, .flags = GetParam().launcher_flags, .before_exec = [] {
         for (int fd = 0; fd <= 2; ++fd) (void)::close(fd);
       }});
  ASSERT_TRUE(IsReady(launcher)) << Explain(launcher);
  TestSandbox sandbox(&launcher, {.flags = GetParam().init_flags});
  ASSERT_TRUE(sandbox.ok()) << sandbox.why_not();
  sandbox.WriteFile("probe", FileContent(PALMSHED_TEST_PROBE));
  auto seen = Lines(sandbox.Run({.argv = {"./probe", "inherited"}}).out, '=');
  EXPECT_EQ(seen["fds"], "0,1,2");
  EXPECT_EQ(sandbox.Shell("cat; echo out; echo err >&2").out, "out\n");
}

TEST_P(HelperIdentity, HasNoPrivilegeLeft) {
  if ((GetParam().init_flags & child::kInitNoProc) != 0) GTEST_SKIP() << "reads /proc";
  TestSandbox sandbox(&*launcher_, {.flags = GetParam().init_flags});
  ASSERT_TRUE(sandbox.ok()) << sandbox.why_not();
  for (const char* who : {"self", "1"}) {
    auto status = Lines(sandbox.Shell(std::string("cat /proc/") + who + "/status").out, ':');
    for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
      EXPECT_EQ(status[set], "0000000000000000") << who << " " << set;
    }
    EXPECT_EQ(status["NoNewPrivs"], "1") << who;
    EXPECT_EQ(status["Seccomp"], "2") << who;
    EXPECT_EQ(!status["Groups"].empty(), KeepsGroups()) << who;
  }
}

TEST_P(HelperIdentity, SetsResourceLimits) {
  TestSandbox sandbox(
      &*launcher_, {.flags = GetParam().init_flags,
                    .rlimits = {{RLIMIT_CORE, 0, 0, 0},
                                {RLIMIT_NOFILE, 0, 64, 128},
                                {RLIMIT_STACK, 0, ~std::uint64_t{0} - 1, ~std::uint64_t{0} - 1}}});
  ASSERT_TRUE(sandbox.ok()) << sandbox.why_not();
  sandbox.WriteFile("probe", FileContent(PALMSHED_TEST_PROBE));
  const auto limit = [&sandbox](int resource) {
    return sandbox.Run({.argv = {"./probe", "limit", std::to_string(resource)}}).out;
  };
  EXPECT_EQ(limit(RLIMIT_CORE), "0 0\n");
  EXPECT_EQ(limit(RLIMIT_NOFILE), "64 128\n");
}

// What is asked for above the hard limit that the engine itself has, is held down to it.
TEST_P(HelperIdentity, StaysBelowTheEnginesOwnLimits) {
  LauncherProcess launcher(
      {.root = GetParam().root, .flags = GetParam().launcher_flags, .before_exec = [] {
         const rlimit limit{256, 512};
         (void)::setrlimit(RLIMIT_NOFILE, &limit);
       }});
  ASSERT_TRUE(IsReady(launcher)) << Explain(launcher);
  TestSandbox sandbox(
      &launcher, {.flags = GetParam().init_flags, .rlimits = {{RLIMIT_NOFILE, 0, 1024, 4096}}});
  ASSERT_TRUE(sandbox.ok()) << sandbox.why_not();
  sandbox.WriteFile("probe", FileContent(PALMSHED_TEST_PROBE));
  EXPECT_EQ(sandbox.Run({.argv = {"./probe", "limit", std::to_string(RLIMIT_NOFILE)}}).out,
            "512 512\n");
}

TEST_P(HelperIdentity, HasNamesOfItsOwn) {
  TestSandbox sandbox(&*launcher_, {.flags = GetParam().init_flags});
  ASSERT_TRUE(sandbox.ok()) << sandbox.why_not();
  EXPECT_EQ(sandbox.Run({.argv = {"/bin/uname", "-n"}}).out, "sandbox\n");
  if ((GetParam().init_flags & child::kInitNoProc) != 0) {
    EXPECT_EQ(sandbox.Run({.argv = {"/bin/ls", "-A", "/proc"}}).out, "");
  } else {
    EXPECT_EQ(sandbox.Run({.argv = {"/bin/cat", "/proc/1/comm"}}).out, "palmshed-init\n");
    EXPECT_EQ(sandbox.Run({.argv = {"/bin/cat", "/proc/self/cgroup"}}).out.find(".."),
              std::string::npos);
  }
}

// C095: keys of one sandbox are not found in another, not even when the user's quota of keys (200
// for an ordinary user, keyrings(7)) leaves no keyring for the later ones.
TEST(HelperKeyring, IsSharedByNobody) {
  LauncherProcess launcher({.root = false});
  ASSERT_TRUE(IsReady(launcher)) << Explain(launcher);
  const auto probe = [](TestSandbox* sandbox, const char* command) {
    sandbox->WriteFile("probe", FileContent(PALMSHED_TEST_PROBE));
    return sandbox->Run({.argv = {"./probe", command}}).out;
  };
  constexpr std::size_t kBeyondTheQuota = 205;
  std::vector<std::unique_ptr<TestSandbox>> all;
  for (std::size_t i = 0; i < kBeyondTheQuota; ++i) {
    all.push_back(std::make_unique<TestSandbox>(&launcher, SandboxSpec{}));
    ASSERT_TRUE(all.back()->ok()) << i << ": " << all.back()->why_not();
    if (i > 0) continue;
    EXPECT_EQ(probe(all.front().get(), "key-add"), "added\nfound\n");
  }
  EXPECT_EQ(probe(all.front().get(), "key-find"), "found\n");
  EXPECT_EQ(probe(all[1].get(), "key-find"), "Required key not available\n");
  EXPECT_EQ(probe(all.back().get(), "key-find"), "Permission denied\n");
  EXPECT_EQ(probe(all.back().get(), "key-add"), "Permission denied\n");
}

}  // namespace
}  // namespace palmshed::testing
