#include "workspace/remove_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "workspace/test_tree.h"

namespace palmshed::workspace {
namespace {

/// Lowers the number of descriptors of this process for as long as it lives.
class FewDescriptors {
 public:
  FewDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &old_);
    const rlimit few{.rlim_cur = 64, .rlim_max = old_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &old_); }

 private:
  rlimit old_{};
};

void MakeDeep(const TestTree& tree, const std::string& top, int levels) {
  tree.Mkdir(top);
  UniqueFd at(::open(tree.At(top).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < levels; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), "d", 0755), 0);
    UniqueFd next(::openat(at.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(next.valid());
    at = std::move(next);
  }
  ASSERT_EQ(::mkdirat(at.get(), "last", 0755), 0);
}

TEST(RemoveTree, RemovesFilesLinksAndTrees) {
  TestTree tree;
  tree.Write("file", "x");
  tree.Link("file", "link");
  tree.Mkdir("empty");
  tree.Mkdir("full");
  tree.Fifo("full/fifo");
  tree.Mkdir("full/sub");
  tree.Write("full/sub/\xff\n *", "x");
  for (const auto name : {"link", "empty", "full", "file"}) {
    EXPECT_TRUE(RemoveTree(tree.fd(), name)) << name;
  }
  EXPECT_TRUE(tree.Names().empty());
}

TEST(RemoveTree, WhatIsGoneIsNoFailure) {
  TestTree tree;
  EXPECT_TRUE(RemoveTree(tree.fd(), "nothing"));
}

TEST(RemoveTree, TenThousandLevelsWithFewDescriptors) {
  const TestTree tree = TestTree::InMemory();
  MakeDeep(tree, "deep", 10'000);
  const FewDescriptors few;
  const auto removed = RemoveTree(tree.fd(), "deep");
  EXPECT_TRUE(removed) << removed.error().message;
  EXPECT_FALSE(tree.Has("deep"));
}

TEST(RemoveTree, TenThousandFilesInSeconds) {  // C092
  TestTree tree;
  tree.Mkdir("many");
  tree.Write("file", "");
  for (int i = 0; i < 100; ++i) {
    const std::string dir = "many/" + std::to_string(i);
    tree.Mkdir(dir);
    for (int j = 0; j < 100; ++j) tree.HardLink("file", dir + "/" + std::to_string(j));
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(RemoveTree(tree.fd(), "many"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_FALSE(tree.Has("many"));
}

TEST(RemoveTree, DirectoriesWithoutPermissionAreOpened) {
  TestTree tree;
  const AsOrdinaryUser user(tree);
  tree.Mkdir("shut");
  for (const auto mode : {0, 0100, 0400, 0500, 0600}) {
    const std::string dir = "shut/" + std::to_string(mode);
    tree.Mkdir(dir);
    tree.Mkdir(dir + "/sub");
    tree.Write(dir + "/sub/file", "x", 0);
    ASSERT_EQ(::chmod(tree.At(dir + "/sub").c_str(), 0), 0);
    ASSERT_EQ(::chmod(tree.At(dir).c_str(), static_cast<mode_t>(mode)), 0);
  }
  ASSERT_EQ(::chmod(tree.At("shut").c_str(), 0), 0);
  const auto removed = RemoveTree(tree.fd(), "shut");
  EXPECT_TRUE(removed) << removed.error().message;
  EXPECT_FALSE(tree.Has("shut"));
}

TEST(RemoveTree, DeepAndWithoutPermission) {
  const TestTree tree = TestTree::InMemory();
  const AsOrdinaryUser user(tree);
  MakeDeep(tree, "deep", 60);
  std::string path = tree.At("deep");
  for (int i = 0; i < 60; ++i) path += "/d";
  for (; path != tree.path(); path.resize(path.rfind('/'))) {
    ASSERT_EQ(::chmod(path.c_str(), 0100), 0);
  }
  const auto removed = RemoveTree(tree.fd(), "deep");
  EXPECT_TRUE(removed) << removed.error().message;
  EXPECT_FALSE(tree.Has("deep"));
}

TEST(RemoveTree, EndsAlthoughSomebodyWritesMeanwhile) {
  const TestTree tree = TestTree::InMemory();
  tree.Mkdir("busy");
  std::atomic<bool> stop = false;
  std::atomic<int> made = 0;
  std::thread writer([&] {
    const UniqueFd dir(::open(tree.At("busy").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (int i = 0; !stop && i < 1'000'000; ++i) {
      if (::mkdirat(dir.get(), std::to_string(i).c_str(), 0755) == 0) ++made;
    }
  });
  while (made < 10) std::this_thread::yield();
  // Either it got the better of the writer, or it says that it did not.
  const auto removed = RemoveTree(tree.fd(), "busy", std::chrono::milliseconds(300));
  stop = true;
  writer.join();
  if (!removed) {
    EXPECT_EQ(removed.error().sys_errno, ENOTEMPTY) << removed.error().message;
  }
  EXPECT_EQ(tree.Has("busy"), !removed);
  EXPECT_TRUE(RemoveTree(tree.fd(), "busy"));
  EXPECT_FALSE(tree.Has("busy"));
}

TEST(RemoveTree, TwoAtOnceBothSucceed) {
  const TestTree tree = TestTree::InMemory();
  tree.Mkdir("both");
  for (int i = 0; i < 200; ++i) {
    tree.Mkdir("both/" + std::to_string(i));
    tree.Write("both/" + std::to_string(i) + "/f", "x");
  }
  MakeDeep(tree, "both/deep", 200);
  bool other = false;
  std::thread second([&] { other = RemoveTree(tree.fd(), "both").has_value(); });
  EXPECT_TRUE(RemoveTree(tree.fd(), "both"));
  second.join();
  EXPECT_TRUE(other);
  EXPECT_FALSE(tree.Has("both"));
}

TEST(RemoveTree, AnImmutableFileIsReportedAndTheRestGoes) {
  TestTree tree;
  tree.Mkdir("stuck");
  tree.Write("stuck/fixed", "x");
  tree.Write("stuck/other", "x");
  const UniqueFd fd(::open(tree.At("stuck/fixed").c_str(), O_RDONLY | O_CLOEXEC));
  int flags = FS_IMMUTABLE_FL;
  if (::ioctl(fd.get(), FS_IOC_SETFLAGS, &flags) != 0) {
    GTEST_SKIP() << "FS_IOC_SETFLAGS: " << std::generic_category().message(errno);
  }
  const auto removed = RemoveTree(tree.fd(), "stuck");
  EXPECT_TRUE(tree.Has("stuck/fixed"));
  EXPECT_FALSE(tree.Has("stuck/other"));
  flags = 0;
  ASSERT_EQ(::ioctl(fd.get(), FS_IOC_SETFLAGS, &flags), 0);
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().sys_errno, EPERM);
  EXPECT_TRUE(removed.error().message.contains("fixed")) << removed.error().message;
}

}  // namespace
}  // namespace palmshed::workspace
