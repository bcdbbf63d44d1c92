// Where what enforces limits is missing, or goes missing, an execution is held by something else or
// refused; it never runs without its limits. Each test lets the program over the limit run, rather
// than believe a report (C006).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/eventually.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/residue.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const SandboxOptions kLimits{.cpu_time_limit = Millis(300), .memory = 64_MiB, .pids = 16};

/// Programs within their limits run, and those beyond are stopped.
void ExpectHeld(Sandbox& sandbox) {
  EXPECT_THAT(Exec(sandbox, {"./probe", "touch", "20"}), ExitedWith(0, "OK\n"));
  EXPECT_THAT(Exec(sandbox, {"./probe", "processes", "5"}), ExitedWith(0, "started 5\n"));
  EXPECT_THAT(Exec(sandbox, {"./probe", "burn", "50"}), ExitedWith(0, "OK\n"));
  EXPECT_THAT(Exec(sandbox, {"./probe", "touch-and-stay", "400"}), EndedBy(Cause::kMemory));
  EXPECT_THAT(Exec(sandbox, {"./probe", "processes", "100"}).out.bytes, HasSubstr("EAGAIN"));
  EXPECT_THAT(Exec(sandbox, {"./probe", "burn", "20000"}), EndedBy(Cause::kCpuTime));
}

/// A quota cannot be had without groups; the refusal says what is missing.
void ExpectNoQuota(Engine& engine, const char* reason) {
  const auto refused = engine.CreateSandbox({.cpu_quota = 0.5});
  ASSERT_THAT(refused, FailsWith(ErrorCode::kUnsupported));
  EXPECT_THAT(refused.error().message + " " + refused.error().remedy, HasSubstr(reason));
  Sandbox conceded = MakeSandboxIn(engine, {.cpu_quota = 0.5, .degraded = {"cpuQuota"}});
  const ExecResult run = ExecShell(conceded, "echo weaker");
  EXPECT_THAT(run, ExitedWith(0, "weaker\n"));
  EXPECT_THAT(run.weaker, ::testing::ElementsAre("cpuQuota"));
}

/// The cgroup file systems of this host, as a container runtime shows them.
bool MakeGroupsReadOnly() {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return false;
  }
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(" - cgroup") == line.npos) continue;
    std::istringstream words(line);
    std::string word, path;
    words >> word >> word >> word >> word >> path;
    if (::mount("", path.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0) {
      return false;
    }
  }
  return true;
}

TEST(LimitsFailClosed, HeldWhereNothingIsMissing) {
  InForkedProcess([] {
    const TempDir root;
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine, kLimits);
    ExpectHeld(sandbox);
  });
}

// C006, C005
TEST(LimitsFailClosed, HeldWhereGroupsCannotBeWritten) {
  PALMSHED_SKIP_UNLESS(::geteuid() == 0, "only root can mount them so");
  InForkedProcess([] {
    ASSERT_TRUE(MakeGroupsReadOnly());
    const TempDir root;
    Engine engine = MakeEngine(root);
    EXPECT_EQ(Must(engine.GetCapabilities()).memory_enforcement, "sampled");
    Sandbox sandbox = MakeSandboxIn(engine, kLimits);
    ExpectHeld(sandbox);
    ExpectNoQuota(engine, "cgroup");
  });
}

// C006, C005
TEST(LimitsFailClosed, HeldForAnOrdinaryUser) {
  AsOrdinaryUser([] {
    const TempDir root;
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine, kLimits);
    ExpectHeld(sandbox);
    if (!Must(engine.GetCapabilities()).cpu_quota_limits) ExpectNoQuota(engine, "cgroup");
  });
}

// ---- groups that go missing

/// Moves whoever is in a group to the one above, as far above as is needed.
void Evict(const std::string& group, const std::string& to) {
  std::ifstream members(group + "/cgroup.procs");
  for (std::string pid; std::getline(members, pid);) {
    if (std::atoi(pid.c_str()) > 0) std::ofstream(to + "/cgroup.procs") << pid << std::flush;
  }
}

std::string RootOfHierarchy(const std::string& group) {
  std::string at = group;
  while (fs::exists(fs::path(at).parent_path() / "cgroup.procs")) at = fs::path(at).parent_path();
  return at;
}

/// What wants more than its limit is held to it, or does not run.
void ExpectHeldOrRefused(Sandbox& sandbox) {
  const auto run = sandbox.Run({"./probe", "touch-and-stay", "400"}, {.timeout = Millis(9000)});
  if (run) {
    EXPECT_THAT(*run, EndedBy(Cause::kMemory));
  } else {
    EXPECT_THAT(run.error().message, HasSubstr("/sys/fs/cgroup")) << ToJson(run.error());
  }
}

class LimitsFailClosedInTime : public KernelTest {};

// C006: what a clean-up of the host removes, that is, groups in which nothing runs.
TEST_F(LimitsFailClosedInTime, HeldAfterEmptyGroupsWereRemoved) {
  Sandbox sandbox = MakeSandbox(kLimits);
  ASSERT_TRUE(ExecShell(sandbox, "true | true").ok());
  PALMSHED_SKIP_UNLESS(!GroupsOf(sandbox.id()).empty(), "there are no groups here");
  for (int round = 0; round < 5; ++round) {
    for (const std::string& group : GroupsOf(sandbox.id())) (void)::rmdir(group.c_str());
    for (int i = 0; i < 3; ++i) ExpectHeldOrRefused(sandbox);
  }
  ExpectHeld(sandbox);
}

// C006: somebody empties and removes every group of the sandbox.
TEST_F(LimitsFailClosedInTime, HeldOrRefusedAfterAllGroupsWereRemoved) {
  Sandbox sandbox = MakeSandbox(kLimits);
  ExpectHeld(sandbox);
  PALMSHED_SKIP_UNLESS(!GroupsOf(sandbox.id()).empty(), "there are no groups here");
  for (int round = 0; round < 5; ++round) {
    // With the child that waits for the next program.
    EXPECT_TRUE(Eventually([&] {
      for (const std::string& group : GroupsOf(sandbox.id())) {
        Evict(group, RootOfHierarchy(group));
        (void)::rmdir(group.c_str());
      }
      return GroupsOf(sandbox.id()).empty();
    }));
    for (int i = 0; i < 3; ++i) ExpectHeldOrRefused(sandbox);
  }
  ExpectHeld(sandbox);
}

/// A group of a hierarchy without controllers that takes no more than so many groups below it.
class FullGroup {
 public:
  explicit FullGroup(std::string path) : path_(std::move(path)) {}
  bool Enter() const {
    if (::mkdir(path_.c_str(), 0755) != 0) return false;
    return static_cast<bool>(std::ofstream(path_ + "/cgroup.procs") << "0" << std::flush);
  }
  bool Allow(const std::string& most) const {
    return static_cast<bool>(std::ofstream(path_ + "/cgroup.max.descendants")
                             << most << std::flush);
  }

 private:
  std::string path_;
};

// C006
TEST(LimitsFailClosed, RefusedWhereNoGroupCanBeMadeAnyMore) {
  const std::string hybrid = "/sys/fs/cgroup/unified";
  PALMSHED_SKIP_UNLESS(::access((hybrid + "/cgroup.procs").c_str(), W_OK) == 0,
                       "this host has no cgroup v2 hierarchy beside those of v1");
  const std::string path = hybrid + "/" + UniqueName();
  InForkedProcess([&] {
    const FullGroup full(path);
    ASSERT_TRUE(full.Enter());
    const TempDir root;
    Engine engine = MakeEngine(root);
    Sandbox first = MakeSandboxIn(engine, kLimits);
    ExpectHeld(first);
    ASSERT_TRUE(full.Allow("0"));
    // Its group can be used again, unless something is still charged to it.
    for (int i = 0; i < 3; ++i) ExpectHeldOrRefused(first);
    Sandbox second = MakeSandboxIn(engine, kLimits);
    for (int i = 0; i < 3; ++i) {
      const auto run = second.Run({"./probe", "touch-and-stay", "400"}, {.timeout = Millis(9000)});
      ASSERT_FALSE(run) << ::testing::PrintToString(*run);
      EXPECT_THAT(run.error().message, HasSubstr(hybrid)) << ToJson(run.error());
    }
    ASSERT_TRUE(full.Allow("max"));
    ExpectHeld(second);
  });
  // The launcher of an engine that has gone is still on its way out.
  EXPECT_TRUE(Eventually([&] { return ::rmdir(path.c_str()) == 0; }));
}

}  // namespace
}  // namespace palmshed::tests
