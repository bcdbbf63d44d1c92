// What becomes of the control groups of sandboxes whose engine died.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/native/collector.h"
#include "backends/native/state.h"
#include "backends/native/state_paths.h"
#include "base/ids.h"
#include "base/unique_fd.h"
#include "kernel/cgroup.h"
#include "kernel/cgroup_test_support.h"
#include "palmshed/error.h"
#include "workspace/test_tree.h"

namespace palmshed::backends::native {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class StateGroupsTest : public ::testing::Test {
 protected:
  SandboxHome Make() {
    auto home = SandboxHome::Create(root_, id_, std::nullopt);
    EXPECT_TRUE(home) << home.error().message;
    return std::move(*home);
  }
  Collection Collect() const {
    auto collection = CollectDead(root_.fd.get());
    EXPECT_TRUE(collection);
    return collection ? std::move(*collection) : Collection{};
  }
  /// Groups as a sandbox has them, with a leaf, which nobody owns any more.
  std::vector<std::string> LeaveGroups(const kernel::CgroupTree& tree) const {
    std::vector<std::string> directories = tree.DirectoriesOf(id_);
    for (const std::string& directory : directories) fs::create_directories(directory + "/1");
    return directories;
  }

  const std::string id_ = MakeId("sbx_");
  workspace::TestTree tree_;
  HostDirectory root_{.fd = UniqueFd(::open(tree_.path().c_str(), O_RDONLY | O_CLOEXEC)),
                      .path = tree_.path()};
};

TEST_F(StateGroupsTest, GroupsOfADeadSandboxGoWithIt) {
  std::string why;
  const auto tree = kernel::HostTree(why);
  if (!tree) GTEST_SKIP() << why;
  const auto directories = LeaveGroups(*tree);
  {
    const SandboxHome home = Make();
    ASSERT_TRUE(home.RecordGroups(directories));
  }
  const Collection collection = Collect();
  EXPECT_THAT(collection.failures, IsEmpty());
  EXPECT_THAT(collection.removed, ElementsAre(id_));
  for (const std::string& directory : directories) {
    EXPECT_FALSE(fs::exists(directory)) << directory;
  }
  EXPECT_THAT(tree_.Names(), IsEmpty());
}

TEST_F(StateGroupsTest, FilesBesideThemGoToo) {
  std::string why;
  const auto tree = kernel::HostTree(why);
  if (!tree) GTEST_SKIP() << why;
  const auto directories = LeaveGroups(*tree);
  {
    const SandboxHome home = Make();
    ASSERT_TRUE(home.RecordGroups(directories));
    tree_.Write(id_ + "/workspace/f", "x");
  }
  EXPECT_THAT(Collect().removed, ElementsAre(id_));
  EXPECT_FALSE(fs::exists(directories.front()));
  EXPECT_THAT(tree_.Names(), IsEmpty());
}

TEST_F(StateGroupsTest, GroupsOfTheLivingStay) {
  std::string why;
  const auto tree = kernel::HostTree(why);
  if (!tree) GTEST_SKIP() << why;
  const auto directories = LeaveGroups(*tree);
  SandboxHome home = Make();
  ASSERT_TRUE(home.RecordGroups(directories));
  EXPECT_THAT(Collect().removed, IsEmpty());
  for (const std::string& directory : directories) EXPECT_TRUE(fs::exists(directory));
  EXPECT_TRUE(home.Remove());
  EXPECT_FALSE(fs::exists(directories.front()));
  EXPECT_THAT(tree_.Names(), IsEmpty());
}

TEST_F(StateGroupsTest, GroupsThatWereNeverMadeAreNoFailure) {
  SandboxHome home = Make();
  ASSERT_TRUE(home.RecordGroups({"/sys/fs/cgroup/" + id_}));
  EXPECT_TRUE(home.Remove());
  EXPECT_THAT(tree_.Names(), IsEmpty());
}

TEST_F(StateGroupsTest, RecordIsWrittenAgainWhenTheGroupsCouldNotBeMade) {
  SandboxHome home = Make();
  ASSERT_TRUE(home.RecordGroups({"/a/" + id_, "/b/" + id_}));
  ASSERT_TRUE(home.RecordGroups({"/a/" + id_, "/b/" + id_}));
  EXPECT_EQ(tree_.Read(id_ + "/groups"), "/a/" + id_ + "\n/b/" + id_ + "\n");
  ASSERT_TRUE(home.RecordGroups({"/c/" + id_}));
  EXPECT_EQ(tree_.Read(id_ + "/groups"), "/c/" + id_ + "\n");
  EXPECT_TRUE(home.Remove());
}

TEST_F(StateGroupsTest, OtherDirectoriesInARecordAreNotTouched) {
  const workspace::TestTree other;
  other.Mkdir("kept");
  {
    const SandboxHome home = Make();
    ASSERT_TRUE(home.RecordGroups({other.At("kept"), other.At("kept") + "/../" + id_ + "/.."}));
  }
  EXPECT_THAT(Collect().removed, ElementsAre(id_));
  EXPECT_TRUE(other.Has("kept"));
}

TEST_F(StateGroupsTest, WhatCannotBeRemovedIsTriedAgain) {
  const workspace::TestTree other;
  other.Mkdir(id_);
  {
    const SandboxHome home = Make();
    ASSERT_TRUE(home.RecordGroups({other.At(id_)}));
  }
  const Collection first = Collect();
  EXPECT_THAT(first.removed, IsEmpty());
  EXPECT_THAT(first.failures, SizeIs(1)) << "no cgroup file system";
  EXPECT_TRUE(other.Has(id_));
  fs::remove(other.At(id_));
  EXPECT_THAT(Collect().removed, ElementsAre(id_));
  EXPECT_THAT(tree_.Names(), IsEmpty());
}

}  // namespace
}  // namespace palmshed::backends::native
