// Limits over the life of sandboxes and engines: nothing of them is left, whoever dies first.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <list>
#include <set>
#include <string>
#include <system_error>
#include <thread>
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
using ::testing::IsEmpty;

class LimitsLife : public KernelTest {};

SandboxOptions AllLimits() {
  return {.cpu_time_limit = Millis(5000), .memory = 64_MiB, .disk_quota = 64_MiB, .pids = 32};
}

std::ptrdiff_t CountDescriptors() {
  return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
}

/// Whether a file of its groups, or of its directories, is open here; without groups, what shows
/// the use of any sandbox.
bool HoldsFilesOf(const Sandbox& sandbox) {
  static const std::set<std::string> sights{"/proc", "/dev/shm", "/proc/sysvipc/shm",
                                            "anon_inode:[perf_event]"};
  return std::ranges::any_of(fs::directory_iterator("/proc/self/fd"), [&](const auto& entry) {
    std::error_code gone;
    const std::string file = fs::read_symlink(entry.path(), gone).string();
    return file.find(sandbox.id()) != std::string::npos || sights.contains(file);
  });
}

/// Made and locked (flock(2)) for as long as it lives, and left behind then.
class LockedDirectory {
 public:
  explicit LockedDirectory(const fs::path& path) {
    // Until it is locked, whoever collects the dead may remove it.
    do {
      ::close(fd_);
      (void)::mkdir(path.c_str(), 0755);
      fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      (void)::flock(fd_, LOCK_EX);
    } while (!fs::exists(path));
  }
  ~LockedDirectory() { ::close(fd_); }
  LockedDirectory(const LockedDirectory&) = delete;
  LockedDirectory& operator=(const LockedDirectory&) = delete;

 private:
  int fd_ = -1;
};

TEST_F(LimitsLife, IdleSandboxHoldsTwoDescriptorsWhateverItsLimits) {
  {
    Sandbox first = MakeSandbox();  // The next one starts the launcher, which stays.
    Sandbox warm = MakeSandbox(AllLimits());
    EXPECT_THAT(ExecShell(warm, "echo x"), ExitedWith(0, "x\n"));
    EXPECT_TRUE(Eventually([&] { return HoldsFilesOf(warm); })) << "the control";
    Must(warm.Destroy());
    EXPECT_TRUE(Eventually([&] { return !HoldsFilesOf(warm); }));
  }
  const std::ptrdiff_t before = CountDescriptors();
  const std::vector<SandboxOptions> kinds{{}, {.pids = 32}, AllLimits(), AllLimits()};
  std::list<Sandbox> idle;
  for (const SandboxOptions& options : kinds) {
    EXPECT_THAT(ExecShell(idle.emplace_back(MakeSandbox(options)), "echo x"), ExitedWith(0, "x\n"));
  }
  EXPECT_TRUE(Eventually([&] { return std::ranges::none_of(idle, HoldsFilesOf); }, kRest));
  const std::ptrdiff_t most = before + 2 * std::ssize(idle);
  EXPECT_TRUE(Eventually([&] { return CountDescriptors() <= most; }, kRest))
      << CountDescriptors() << " descriptors, there were " << before;
  for (Sandbox& rested : idle) EXPECT_THAT(ExecShell(rested, "echo y"), ExitedWith(0, "y\n"));
}

// C047, C007
TEST_F(LimitsLife, ThousandExecutionsLeaveNothing) {
  Sandbox sandbox = MakeSandbox(AllLimits());
  const auto run = [&] { EXPECT_THAT(ExecShell(sandbox, "echo x"), ExitedWith(0, "x\n")); };
  const auto settle = [&] {
    for (int i = 0; i < 5; ++i) run();
  };
  settle();
  const std::size_t files = TreeOf(workspaces()).size();
  const std::size_t processes = Descendants().size();
  const std::ptrdiff_t descriptors = CountDescriptors();
  const Residue before = Residue::Snapshot();
  for (int i = 0; i < 1000 && !HasFailure(); ++i) run();
  settle();
  EXPECT_EQ(TreeOf(workspaces()).size(), files);
  EXPECT_TRUE(Eventually([&] { return Descendants().size() <= processes + 1; }))
      << ::testing::PrintToString(Descendants());
  EXPECT_TRUE(Eventually([&] { return CountDescriptors() <= descriptors + 4; }))
      << CountDescriptors() << " descriptors, there were " << descriptors;
  EXPECT_LE(Residue::Snapshot().Since(before).size(), 1U);
  // C047: the thousand and first.
  EXPECT_THAT(Exec(sandbox, {"./probe", "touch-and-stay", "400"}), EndedBy(Cause::kMemory));
}

// C007: an engine that is killed leaves groups, and the next one removes them.
TEST_F(LimitsLife, GroupsOfAKilledEngineGo) {
  const TempDir root;
  const std::string name = UniqueName();
  const Residue before = Residue::Snapshot();
  ChildHost host([&](ChildHost& self) {
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine, AllLimits());
    AddProbe(sandbox, name);
    const Execution staying = Must(sandbox.Start({"./" + name, "daemon", "wait"}));
    self.Tell(AwaitOutput(staying, "ready") ? "ready" : "failed");
    ChildHost::StayForEver();
  });
  ASSERT_EQ(host.Hear(), "ready");
  ASSERT_EQ(FindProcesses(name).size(), 2U);
  host.Kill();
  EXPECT_TRUE(Eventually([&] { return FindProcesses(name).empty(); }));
  Engine next = MakeEngine(root);
  Sandbox sandbox = MakeSandboxIn(next);
  Must(sandbox.Destroy());
  EXPECT_TRUE(Eventually([&] { return Residue::Snapshot().Since(before).empty(); }))
      << ::testing::PrintToString(Residue::Snapshot().Since(before));
  EXPECT_TRUE(Eventually([&] { return TreeOf(root.path()).empty(); }));
}

// C007
TEST_F(LimitsLife, GroupsOfAnEngineKilledAtAnyMomentGo) {
  const Residue before = Residue::Snapshot();
  for (int round = 0; round < 20; ++round) {
    const TempDir root;
    ChildHost host([&](ChildHost& self) {
      self.Tell("started");
      Engine engine = MakeEngine(root);
      while (true) {
        Sandbox sandbox = MakeSandboxIn(engine, AllLimits());
        (void)Exec(sandbox, {"true"});
        (void)Exec(sandbox, {"true"});
      }
    });
    ASSERT_EQ(host.Hear(), "started");
    std::this_thread::sleep_for(std::chrono::milliseconds(3 * round));
    host.Kill();
    EXPECT_TRUE(Eventually([] { return Descendants().empty(); }));
    Engine next = MakeEngine(root);
    Must(MakeSandboxIn(next).Destroy());
    EXPECT_TRUE(Eventually([&] { return Residue::Snapshot().Since(before).empty(); }))
        << "round " << round << ::testing::PrintToString(Residue::Snapshot().Since(before));
    EXPECT_TRUE(Eventually([&] { return TreeOf(root.path()).empty(); }));
  }
}

// C007: an engine that looks for groups makes some, before it has a sandbox. What shows its death
// is a lock. The next engine has no limits to look for groups itself.
TEST_F(LimitsLife, GroupsThatAKilledEngineHadMadeToLookAtGo) {
  Sandbox sandbox = MakeSandbox(AllLimits());
  ASSERT_TRUE(Exec(sandbox, {"true"}).ok());  // Its groups may be made after it.
  std::vector<fs::path> probes;
  for (const std::string& directory : GroupsOf(sandbox.id())) {
    const fs::path group(directory);
    if (group.filename() != sandbox.id()) continue;
    probes.push_back(group.parent_path() /
                     ("palmshed-probe-" + std::string(sandbox.id().substr(4))));
  }
  PALMSHED_SKIP_UNLESS(!probes.empty(), "there are no groups here");
  const auto left = [&] {
    return std::ranges::count_if(probes, [](auto& at) { return fs::exists(at); });
  };
  const auto next_engine = [] {
    const TempDir root;
    std::ofstream(root.path() + "/sbx_0123456789abcdef.lock").put('\n');
    {
      Engine engine = MakeEngine(root);
      Must(MakeSandboxIn(engine).Destroy());
    }
    EXPECT_THAT(TreeOf(root.path()), IsEmpty());
  };
  {
    // Engines of other tests remove those of the dead, too: the lock makes these a live one's.
    std::list<LockedDirectory> held;
    for (const fs::path& probe : probes) held.emplace_back(probe);
    next_engine();
    EXPECT_EQ(left(), std::ssize(probes)) << "their maker lives";
  }
  next_engine();
  EXPECT_EQ(left(), 0);
}

// C020: two engines share a directory; one comes and goes while the other's program runs.
TEST_F(LimitsLife, AnotherEngineLeavesTheGroupsOfTheLivingAlone) {
  const TempDir root;
  Engine first = MakeEngine(root);
  Sandbox sandbox = MakeSandboxIn(first, AllLimits());
  Execution running = Must(
      sandbox.StartShell("echo up; read x; exec ./probe touch-and-stay 400", {.stdin_pipe = true}));
  ASSERT_TRUE(AwaitOutput(running, "up"));
  for (int i = 0; i < 5; ++i) {
    Engine second = MakeEngine(root);
    Sandbox other = MakeSandboxIn(second, AllLimits());
    EXPECT_THAT(ExecShell(other, "echo x"), ExitedWith(0, "x\n"));
  }
  EXPECT_EQ(running.status(), Status::kRunning);
  // Its limits hold as before.
  Must(running.CloseStdin());
  EXPECT_THAT(Must(running.Wait()), EndedBy(Cause::kMemory));
  EXPECT_THAT(ExecShell(sandbox, "echo x"), ExitedWith(0, "x\n"));
}

/// A group on the hierarchy where the kernel can kill one, and a process of the test's in it.
class GroupWithProcess {
 public:
  explicit GroupWithProcess(std::string path) : path_(std::move(path)) {
    if (::mkdir(path_.c_str(), 0755) != 0) return;
    std::ofstream(path_ + "/cgroup.procs") << host_.pid() << std::flush;
  }
  ~GroupWithProcess() {
    host_.Kill();
    (void)::rmdir(path_.c_str());
  }
  GroupWithProcess(const GroupWithProcess&) = delete;
  GroupWithProcess& operator=(const GroupWithProcess&) = delete;

  const std::string& path() const { return path_; }
  /// Ended processes that nobody has waited for do not count.
  bool Holds() const { return !SlurpIfThere(path_ + "/cgroup.procs").empty(); }
  bool Exists() const { return fs::exists(path_); }

 private:
  std::string path_;
  ChildHost host_{[](ChildHost&) { ChildHost::StayForEver(); }};
};

std::string HierarchyThatKills() {
  for (const char* path : {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"}) {
    if (::access((std::string(path) + "/cgroup.procs").c_str(), W_OK) == 0 &&
        ::access((std::string(path) + "/cgroup.subtree_control").c_str(), F_OK) == 0) {
      return path;
    }
  }
  return "";
}

// C020: a record is believed only about groups that carry the dead sandbox's own name.
TEST_F(LimitsLife, CollectorKillsInGroupsOfTheDeadAndNowhereElse) {
  const std::string top = HierarchyThatKills();
  PALMSHED_SKIP_UNLESS(::geteuid() == 0 && !top.empty(), "needs a cgroup v2 hierarchy of root's");
  const TempDir root;
  const std::string id = "sbx_0123456789abcdef";
  const GroupWithProcess dead(top + "/" + id);
  const GroupWithProcess foreign(top + "/" + UniqueName());
  const GroupWithProcess namesake(top + "/" + UniqueName() + id);
  ASSERT_TRUE(dead.Holds() && foreign.Holds() && namesake.Holds());
  for (const char* directory : {"", "/workspace", "/tmp"}) {
    fs::create_directory(root.path() + "/" + id + directory);
  }
  root.AddFile(id + "/groups", dead.path() + "\n" + foreign.path() + "\n" + namesake.path() + "\n" +
                                   top + "\n/tmp\n" + foreign.path() + "/../" + id + "x\n");
  Engine engine = MakeEngine(root);
  Must(MakeSandboxIn(engine).Destroy());
  EXPECT_TRUE(Eventually([&] { return TreeOf(root.path()).empty(); }))
      << ::testing::PrintToString(TreeOf(root.path()));
  EXPECT_FALSE(dead.Exists());
  EXPECT_TRUE(foreign.Holds());
  EXPECT_TRUE(namesake.Holds());
}

TEST_F(LimitsLife, SandboxMayBeDestroyedWhileLimitedExecutionsStart) {
  for (int round = 0; round < 8; ++round) {
    Sandbox sandbox = MakeSandbox(AllLimits());
    std::atomic<int> started = 0;
    std::vector<std::jthread> users;
    for (int i = 0; i < 6; ++i) {
      users.emplace_back([&] {
        while (true) {
          const auto run = sandbox.RunShell("echo x");
          if (!run) {
            EXPECT_EQ(run.error().code, ErrorCode::kBackendLost)
                << ::testing::PrintToString(run.error());
            return;
          }
          EXPECT_TRUE(run->ok() || run->status == Status::kCancelled ||
                      run->termination.cause == Cause::kBackendLost)
              << ::testing::PrintToString(*run);
          ++started;
        }
      });
    }
    EXPECT_TRUE(Eventually([&] { return started >= 2 * round; }));
    Must(sandbox.Destroy());
  }
}

}  // namespace
}  // namespace palmshed::tests
