// Where groups are made on hosts of all kinds, which are made up: directories in which the usual
// files appear, as far as the group above hands down the controllers.
#include "kernel/cgroup_find.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <expected>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "kernel/cgroup.h"
#include "kernel/cgroup_place.h"
#include "palmshed/error.h"
#include "workspace/test_tree.h"

namespace palmshed::kernel {
namespace {

namespace fs = std::filesystem;

constexpr pid_t kSelf = 4242;

std::string Slurp(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class FindTest : public ::testing::Test {
 protected:
  FindTest() {
    host_.self = kSelf;
    host_.make = [this](const std::string& path) { return Make(path); };
    host_.remove = [](const std::string& path) -> Result<void> {
      fs::remove_all(path);
      return {};
    };
  }

  std::string At(const std::string& name) const { return tree_.path() + name; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(At(name)) << text;
  }

  /// A cgroup v2 hierarchy; `controllers` are those that its root has.
  void MountV2(const std::string& controllers, const std::string& own) {
    fs::create_directories(At("/v2"));
    Fill(At("/v2"), controllers, {});
    host_.self_cgroup += "0::" + own + "\n";
    host_.mountinfo += "41 31 0:38 / " + At("/v2") + " rw - cgroup2 cgroup2 rw\n";
  }
  /// A group with processes, of a hierarchy that others have set up.
  void AddGroup(const std::string& name, const std::string& handed_down,
                const std::string& processes) const {
    const std::string path = At("/v2" + name);
    ASSERT_TRUE(Make(path));
    Write("/v2" + name + "/cgroup.subtree_control", handed_down);
    Write("/v2" + name + "/cgroup.procs", processes);
  }
  void MountV1(const std::string& controller, const std::vector<std::string>& files) {
    const std::string path = At("/" + controller);
    fs::create_directories(path);
    files1_[path] = files;
    host_.self_cgroup += "3:" + controller + ":/\n";
    host_.mountinfo += "35 31 0:32 / " + path + " rw - cgroup cgroup rw," + controller + "\n";
  }
  void MountAllV1() {
    MountV1("memory", {"cgroup.procs", "memory.limit_in_bytes", "memory.oom_control",
                       "memory.failcnt", "cgroup.event_control"});
    MountV1("pids", {"cgroup.procs", "pids.max", "pids.current"});
    MountV1("cpu", {"cgroup.procs", "cpu.cfs_quota_us", "cpu.stat"});
    MountV1("cpuacct", {"cgroup.procs", "cpuacct.usage"});
  }

  std::unique_ptr<CgroupTree> Find() { return FindCgroupTreeOn(host_, missing_); }
  /// Where a group called g would be.
  static std::string Place(const std::unique_ptr<CgroupTree>& tree) {
    return tree ? tree->DirectoriesOf("g").front() : "nowhere";
  }

  /// Nobody can make a group in `path`; who is root here can write anything otherwise.
  void Close(const std::string& name) { closed_.push_back(At(name)); }

  workspace::TestTree tree_;
  CgroupHost host_;
  NoCgroups missing_;

 private:
  static void Fill(const std::string& path, const std::string& controllers,
                   const std::vector<std::string>& files) {
    std::ofstream(path + "/cgroup.controllers") << controllers << "\n";
    std::ofstream(path + "/cgroup.subtree_control") << "";
    std::ofstream(path + "/cgroup.procs") << "";
    std::ofstream(path + "/cpu.stat") << "usage_usec 0\n";
    for (const std::string& file : files) std::ofstream(fs::path(path) / file) << "";
  }

  /// What mkdir does in a cgroup file system.
  Result<void> Make(const std::string& path) const {
    const std::string parent = fs::path(path).parent_path();
    for (const std::string& closed : closed_) {
      if (parent == closed) return std::unexpected(SysError("mkdir", EACCES, path));
    }
    if (::mkdir(path.c_str(), 0700) != 0) return std::unexpected(SysError("mkdir", errno, path));
    if (const auto known = files1_.find(parent); known != files1_.end()) {
      for (const std::string& file : known->second) std::ofstream(fs::path(path) / file) << "";
      return {};
    }
    std::string handed_down;
    std::vector<std::string> files;
    std::istringstream words(Slurp(parent + "/cgroup.subtree_control"));
    for (std::string word; words >> word;) {
      if (word.starts_with('+')) word.erase(0, 1);
      handed_down += (handed_down.empty() ? "" : " ") + word;
      if (word == "memory") files.insert(files.end(), {"memory.max", "memory.events"});
      if (word == "pids") files.insert(files.end(), {"pids.max", "pids.current"});
      if (word == "cpu") files.emplace_back("cpu.max");
    }
    Fill(path, handed_down, files);
    std::ofstream(path + "/cgroup.type") << "domain\n";
    return {};
  }

  std::map<std::string, std::vector<std::string>> files1_;
  std::vector<std::string> closed_;
};

TEST_F(FindTest, ControllersOfV1BesideAnEmptyV2AreTaken) {
  MountAllV1();
  MountV2("", "/");
  const auto tree = Find();
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->name(), "cgroup v1");
  const CgroupControllers has = tree->controllers();
  EXPECT_TRUE(has.memory && has.pids && has.cpu_quota && has.cpu_time);
}

TEST_F(FindTest, PartOfV1SaysWhatIsMissing) {
  MountV1("cpuacct", {"cgroup.procs", "cpuacct.usage"});
  const auto tree = Find();
  ASSERT_TRUE(tree);
  EXPECT_TRUE(tree->controllers().cpu_time);
  EXPECT_FALSE(tree->controllers().memory || tree->controllers().pids);
  EXPECT_NE(missing_.reason.find("memory"), std::string::npos) << missing_.reason;
}

TEST_F(FindTest, V1ThatMayNotBeWrittenIsNamed) {
  host_.root = true;
  MountAllV1();
  for (const char* name : {"/memory", "/pids", "/cpu", "/cpuacct"}) Close(name);
  EXPECT_FALSE(Find());
  EXPECT_NE(missing_.reason.find(At("/memory")), std::string::npos) << missing_.reason;
  EXPECT_NE(missing_.remedy.find("remount,rw " + At("/memory")), std::string::npos)
      << missing_.remedy;
}

TEST_F(FindTest, GroupsAboveThatHandDownControllersServe) {
  MountV2("memory pids cpu", "/user/session");
  Write("/v2/cgroup.subtree_control", "memory pids cpu");
  AddGroup("/user", "memory pids cpu", "");
  AddGroup("/user/session", "", "1\n4242\n");
  Write("/v2/user/session/cgroup.type", "domain threaded\n");
  const auto tree = Find();
  EXPECT_EQ(Place(tree), At("/v2/user/g"));
  EXPECT_TRUE(tree->controllers().memory && tree->controllers().pids);
}

TEST_F(FindTest, GroupsThatCannotBeWrittenAreLeftForThoseThatCan) {
  MountV2("memory pids", "/user/session");
  Write("/v2/cgroup.subtree_control", "memory pids");
  AddGroup("/user", "memory pids", "");
  AddGroup("/user/session", "", "4242\n");
  Close("/v2/user/session");
  Close("/v2/user");
  EXPECT_EQ(Place(Find()), At("/v2/g"));
}

// Such a group could hand down pids and cpu, and none made in it could have processes any more.
TEST_F(FindTest, NothingIsHandedDownWhereOthersHaveProcesses) {
  MountV2("memory pids cpu", "/session");
  Write("/v2/cgroup.subtree_control", "memory pids cpu");
  AddGroup("/session", "", "1\n4242\n");
  Close("/v2");
  const auto tree = Find();
  EXPECT_FALSE(tree && tree->controllers().pids);
  EXPECT_EQ(Slurp(At("/v2/session/cgroup.subtree_control")), "");
  EXPECT_FALSE(fs::exists(At("/v2/session/engine")));
  EXPECT_NE(missing_.reason.find("has processes of its own"), std::string::npos) << missing_.reason;
  // The control.
  Write("/v2/session/cgroup.procs", "");
  const auto empty = Find();
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->controllers().cpu_quota);
}

TEST_F(FindTest, OrdinaryUserIsToldHowToBeGivenGroups) {
  MountV2("memory pids", "/session");
  AddGroup("/session", "", "4242\n");
  Close("/v2/session");
  Close("/v2");
  EXPECT_FALSE(Find());
  EXPECT_NE(missing_.remedy.find("systemd-run --user --scope -p Delegate=yes -- palmshed"),
            std::string::npos)
      << missing_.remedy;
  EXPECT_NE(missing_.reason.find("/v2/session"), std::string::npos) << missing_.reason;
}

TEST_F(FindTest, RootOfAReadOnlyMountIsToldToMountItAgain) {
  host_.root = true;
  MountV2("memory pids", "/");
  host_.mountinfo = "41 31 0:38 / " + At("/v2") + " ro - cgroup2 cgroup2 rw\n";
  Close("/v2");
  EXPECT_FALSE(Find());
  EXPECT_NE(missing_.remedy.find("remount,rw"), std::string::npos) << missing_.remedy;
}

TEST_F(FindTest, V2WithoutControllersCountsCpuTimeAlone) {
  MountV2("", "/");
  const auto tree = Find();
  ASSERT_TRUE(tree);
  const CgroupControllers has = tree->controllers();
  EXPECT_TRUE(has.cpu_time);
  EXPECT_FALSE(has.memory || has.pids || has.cpu_quota);
  EXPECT_FALSE(missing_.reason.empty());
}

TEST_F(FindTest, NothingMountedIsSaid) {
  EXPECT_FALSE(Find());
  EXPECT_FALSE(missing_.reason.empty());
  EXPECT_FALSE(missing_.remedy.empty());
}

TEST_F(FindTest, ProbesLeaveNothing) {
  MountAllV1();
  MountV2("memory pids", "/");
  (void)Find();
  for (const auto& entry : fs::recursive_directory_iterator(tree_.path())) {
    EXPECT_EQ(entry.path().filename().string().find("palmshed"), std::string::npos) << entry.path();
  }
}

TEST_F(FindTest, ProbesOfTheDeadGoAndThoseOfTheLivingStay) {
  MountAllV1();
  const auto tree = Find();
  ASSERT_TRUE(tree);
  const fs::path parent = fs::path(tree->DirectoriesOf("x").front()).parent_path();
  const fs::path dead = parent / "palmshed-probe-0123456789abcdef";
  const fs::path living = parent / "palmshed-probe-fedcba9876543210";
  fs::create_directory(dead);
  fs::create_directory(living);
  const UniqueFd lock(::open(living.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
  (void)Find();
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(living));
}

}  // namespace
}  // namespace palmshed::kernel
