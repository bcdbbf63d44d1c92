#include "workspace/remove_newer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "workspace/disk_usage.h"
#include "workspace/test_tree.h"

namespace palmshed::workspace {
namespace {

/// What a file made now has as its time of birth. The file system's clock is no other's: since
/// Linux 6.13 it may be ahead of CLOCK_REALTIME_COARSE.
FileTime BirthNow() {
  TestTree made;
  made.Write("now", "x");
  DiskUsage usage;
  const std::array roots{made.fd()};
  EXPECT_TRUE(usage.AddTrees(roots));
  return usage.newest();
}

class NewFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    tree_.Write("old", "x");
    tree_.Mkdir("kept");
    tree_.Write("kept/old", "x");
    DiskUsage usage;
    const std::array roots{tree_.fd()};
    ASSERT_TRUE(usage.AddTrees(roots));
    newest_ = usage.newest();
    newest_files_ = usage.TakeNewestFiles().value();
    if (!usage.births_known()) GTEST_SKIP() << "this file system keeps no times of birth";
    do {
      newness_.since = BirthNow();
    } while (newness_.since <= newest_);
  }
  bool RemoveNew() {
    const std::array roots{tree_.fd()};
    return RemoveNewer(roots, newness_);
  }

  const TestTree tree_;
  Newness newness_{};
  FileTime newest_{};
  std::vector<FileId> newest_files_{};
};

TEST_F(NewFiles, GoAndOldOnesStay) {
  const TestTree outside;
  outside.Write("victim", "x");
  tree_.Write("kept/new", "x");
  tree_.Mkdir("new");
  tree_.Mkdir("new/sub");
  tree_.Write("new/sub/file", "x");
  tree_.Link(outside.path(), "new/link");
  tree_.Fifo("fifo");
  tree_.Write("old", "more");  // Written to, not made.
  EXPECT_TRUE(RemoveNew());
  EXPECT_EQ(tree_.Names(), (std::set<std::string>{"old", "kept"}));
  EXPECT_EQ(tree_.Names("kept"), std::set<std::string>{"old"});
  EXPECT_EQ(outside.Names(), std::set<std::string>{"victim"});
}

TEST_F(NewFiles, OldOnesThatWereMovedKeepTheirNewDirectory) {
  tree_.Mkdir("new");
  tree_.Write("new/file", "x");
  ASSERT_EQ(std::rename(tree_.At("old").c_str(), tree_.At("new/moved").c_str()), 0);
  EXPECT_FALSE(RemoveNew());  // A directory that is new had to stay.
  EXPECT_EQ(tree_.Names("new"), std::set<std::string>{"moved"});
}

TEST_F(NewFiles, OldOnesOfTheSameTickStay) {
  newness_ = {.since = newest_, .but = newest_files_};
  EXPECT_TRUE(RemoveNew());
  EXPECT_EQ(tree_.Names(), (std::set<std::string>{"old", "kept"}));
  // The control: without the exception the latest goes.
  newness_.but = std::vector<FileId>();
  EXPECT_TRUE(RemoveNew());
  EXPECT_FALSE(tree_.Has("kept/old"));
}

TEST_F(NewFiles, WhatNobodyKnowsStaysAndIsTold) {
  newness_ = {.since = newest_, .but = std::nullopt};
  EXPECT_FALSE(RemoveNew());
  EXPECT_EQ(tree_.Names("kept"), std::set<std::string>{"old"});
}

TEST_F(NewFiles, AThousandInOneDirectoryGo) {
  tree_.Mkdir("new");
  for (int i = 0; i < 1000; ++i) tree_.Write("new/" + std::to_string(i), "");
  EXPECT_TRUE(RemoveNew());
  EXPECT_FALSE(tree_.Has("new"));
}

}  // namespace
}  // namespace palmshed::workspace
