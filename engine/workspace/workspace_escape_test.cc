// The workspace against a program that plants links (C015) and swaps them while the API works.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <string_view>
#include <thread>

#include "palmshed/error.h"
#include "palmshed/files.h"
#include "workspace/test_tree.h"
#include "workspace/workspace.h"

namespace palmshed::workspace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A workspace with planted links, and a directory outside that they lead to.
class Planted : public ::testing::Test {
 protected:
  void SetUp() override {
    outside_.Write("passwd", "secret");
    outside_.Mkdir("tmp");
    tree_.Link(outside_.At("passwd"), "l");
    tree_.Link(outside_.path(), "d");
    tree_.Link("../../..", "up");
    tree_.Link(outside_.At("new"), "dangling");
    tree_.Link("l2", "l1");
    tree_.Link("l1", "l2");
    tree_.Link("../" + outside_.path().substr(outside_.path().rfind('/') + 1), "beside");
    tree_.Mkdir("ok");
    tree_.Link("ok", "in");
    tree_.Write("ok/x", "inside");
  }

  template <class T>
  void ExpectLeaves(const Result<T>& result) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kFsError) << result.error().message;
    EXPECT_TRUE(result.error().message.contains("leaves the workspace")) << result.error().message;
  }

  void ExpectOutsideUntouched() {
    EXPECT_THAT(outside_.Names(), ElementsAre("passwd", "tmp"));
    EXPECT_THAT(outside_.Names("tmp"), IsEmpty());
    EXPECT_EQ(outside_.Read("passwd"), "secret");
  }

  TestTree outside_ = TestTree::InMemory();
  TestTree tree_ = TestTree::InMemory();
  Workspace workspace_{tree_.Open()};
};

TEST_F(Planted, TheLinksLeadOutForAPlainOpen) {
  EXPECT_EQ(tree_.Read("l"), "secret");
  EXPECT_EQ(tree_.Read("d/passwd"), "secret");
  EXPECT_EQ(tree_.Read("beside/passwd"), "secret");
}

TEST_F(Planted, ReadingLeavesIsRefused) {
  ExpectLeaves(workspace_.ReadFile("l"));
  ExpectLeaves(workspace_.ReadFile("d/passwd"));
  ExpectLeaves(workspace_.ReadFile("up/etc/hostname"));
  ExpectLeaves(workspace_.ReadFile("beside/passwd"));
  ExpectLeaves(workspace_.ReadFile("../" + outside_.path()));
  ExpectLeaves(workspace_.ReadFile(outside_.At("passwd")));
  ExpectLeaves(workspace_.ReadFile("ok/../../x"));
  ExpectLeaves(workspace_.ReadFile("missing/../../x"));
  ExpectLeaves(workspace_.List("d"));
  ExpectLeaves(workspace_.List(".."));
  ExpectLeaves(workspace_.Stat("d/passwd"));
  ExpectLeaves(workspace_.Stat(".."));
  ExpectOutsideUntouched();
}

TEST_F(Planted, WritingLeavesIsRefused) {
  ExpectLeaves(workspace_.WriteFile("dangling", AsBytes("x"), 0644));
  ExpectLeaves(workspace_.WriteFile("d/tmp/pwn", AsBytes("x"), 0644));
  ExpectLeaves(workspace_.WriteFile("l", AsBytes("x"), 0644));
  ExpectLeaves(workspace_.WriteFile("beside/pwn", AsBytes("x"), 0644));
  ExpectLeaves(workspace_.WriteFile("../pwn", AsBytes("x"), 0644));
  ExpectLeaves(workspace_.MakeDirectory("d/tmp/z", 0755));
  ExpectLeaves(workspace_.MakeDirectory("dangling", 0755));
  ExpectLeaves(workspace_.MakeDirectory("../z", 0755));
  ExpectLeaves(workspace_.OpenDirectoryMakingParents("d/tmp/z"));
  ExpectLeaves(workspace_.Chmod("l", 0777));
  ExpectLeaves(workspace_.Chmod("d/passwd", 0777));
  ExpectLeaves(workspace_.Move("d/passwd", "mine"));
  ExpectLeaves(workspace_.Move("ok/x", "d/tmp/x"));
  ExpectLeaves(workspace_.Remove("d/passwd", true));
  ExpectLeaves(workspace_.Remove("..", true));
  ExpectOutsideUntouched();
  EXPECT_EQ(outside_.Mode("passwd"), 0644U);
}

TEST_F(Planted, TransfersThatLeaveAreRefused) {
  TestTree host;
  host.Write("f", "x");
  host.Mkdir("t");
  host.Write("t/f", "x");
  ExpectLeaves(workspace_.UploadFile(host.At("f"), "d/tmp/f"));
  ExpectLeaves(workspace_.UploadFile(host.At("f"), "dangling"));
  ExpectLeaves(workspace_.UploadFile(host.At("t"), "d/tmp"));
  ExpectLeaves(workspace_.UploadFile(host.At("t"), "d/tmp/t"));
  ExpectLeaves(workspace_.UploadFile(host.At("t"), "dangling"));
  ExpectLeaves(workspace_.DownloadFile("l", host.At("got")));
  ExpectLeaves(workspace_.DownloadFile("d/passwd", host.At("got")));
  EXPECT_FALSE(host.Has("got"));
  ExpectOutsideUntouched();
}

TEST_F(Planted, LoopsAreErrorsThatSaySo) {
  const auto content = workspace_.ReadFile("l1");
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, ErrorCode::kFsError);
  EXPECT_TRUE(content.error().message.contains("loop")) << content.error().message;
  EXPECT_EQ(workspace_.WriteFile("l1", {}, 0644).error().sys_errno, ELOOP);
  EXPECT_EQ(workspace_.List("l1").error().sys_errno, ELOOP);
  EXPECT_EQ(workspace_.MakeDirectory("l1/x", 0755).error().sys_errno, ELOOP);
}

TEST_F(Planted, LinksThatStayInsideWork) {
  EXPECT_EQ(workspace_.ReadFile("in/x"), "inside");
  EXPECT_EQ(workspace_.List("in")->size(), 1U);
  ASSERT_TRUE(workspace_.WriteFile("in/y", AsBytes("y"), 0644));
  EXPECT_EQ(tree_.Read("ok/y"), "y");
  ASSERT_TRUE(workspace_.MakeDirectory("in/z", 0755));
  EXPECT_TRUE(tree_.Has("ok/z"));
}

TEST_F(Planted, WritingThroughALinkReplacesItsTarget) {
  tree_.Link("../ok/x", "ok/again");
  tree_.Link("ok/again", "twice");
  ASSERT_TRUE(workspace_.WriteFile("twice", AsBytes("new"), 0644));
  EXPECT_EQ(tree_.Read("ok/x"), "new");
  EXPECT_EQ(tree_.Target("twice"), "ok/again");
  tree_.Link("ok/later", "early");
  ASSERT_TRUE(workspace_.WriteFile("early", AsBytes("made"), 0644));
  EXPECT_EQ(tree_.Read("ok/later"), "made");
}

TEST_F(Planted, LinksThemselvesCanBeSeenMovedAndRemoved) {
  EXPECT_EQ(workspace_.Stat("l")->type, FileType::kSymlink);
  ASSERT_TRUE(workspace_.Move("l", "moved"));
  EXPECT_EQ(tree_.Target("moved"), outside_.At("passwd"));
  EXPECT_TRUE(workspace_.Remove("moved", false));
  EXPECT_TRUE(workspace_.Remove("d", true));
  EXPECT_TRUE(workspace_.Remove("in", true));
  EXPECT_FALSE(tree_.Has("d"));
  EXPECT_TRUE(tree_.Has("ok/x"));
  ExpectOutsideUntouched();
}

TEST_F(Planted, RecursiveRemovalStopsAtLinks) {
  tree_.Mkdir("trap");
  tree_.Link(outside_.path(), "trap/out");
  tree_.Link("..", "trap/up");
  ASSERT_TRUE(workspace_.Remove("trap", true));
  EXPECT_TRUE(tree_.Has("ok/x"));
  ExpectOutsideUntouched();
}

/// Exchanges a directory and a link to the outside as fast as it can.
class Swapper {
 public:
  Swapper(const TestTree& tree, const char* a, const char* b)
      : thread_([&tree, a, b, this] {
          while (!stop_) {
            ::renameat2(tree.fd(), a, tree.fd(), b, RENAME_EXCHANGE);
            ++swaps_;
          }
        }) {}
  ~Swapper() {
    stop_ = true;
    thread_.join();
  }
  int swaps() const { return swaps_; }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<int> swaps_ = 0;
  std::thread thread_;
};

TEST_F(Planted, RacingSwapsNeverLetACallOut) {
  tree_.Mkdir("race");
  tree_.Write("race/passwd", "inside");
  tree_.Mkdir("race/tmp");
  int inside = 0;
  int naive_leaks = 0;
  const Swapper swapper(tree_, "race", "d");
  for (int round = 0; round < 100'000 && (round < 3000 || inside == 0 || naive_leaks == 0);
       ++round) {
    const auto content = workspace_.ReadFile("race/passwd");
    EXPECT_NE(content, "secret");
    if (content && *content == "inside") ++inside;
    if (tree_.Read("race/passwd") == "secret") ++naive_leaks;
    (void)workspace_.WriteFile("race/tmp/w", AsBytes("x"), 0644);
    (void)workspace_.MakeDirectory("race/tmp/m/n", 0755);
    (void)workspace_.Chmod("race/passwd", 0600);
    (void)workspace_.Move("ok/x", "race/tmp/x");
    (void)workspace_.Remove("race/tmp/m", true);
  }
  EXPECT_GT(swapper.swaps(), 0);
  EXPECT_GT(inside, 0) << "control: some calls must have gone through";
  EXPECT_GT(naive_leaks, 0) << "control: a plain open must have been led outside";
  ExpectOutsideUntouched();
  EXPECT_EQ(outside_.Mode("passwd"), 0644U);
}

TEST_F(Planted, RacingFinalLinkNeverLetsAWriteOut) {
  tree_.Write("file", "inside");
  tree_.Link(outside_.At("passwd"), "leaf");
  int written = 0;
  {
    const Swapper swapper(tree_, "leaf", "file");
    for (int round = 0; round < 100'000 && (round < 2000 || written == 0); ++round) {
      if (workspace_.WriteFile("leaf", AsBytes("x"), 0644)) ++written;
      EXPECT_NE(workspace_.ReadFile("leaf"), "secret");
    }
  }
  EXPECT_GT(written, 0);
  ExpectOutsideUntouched();
}

}  // namespace
}  // namespace palmshed::workspace
