#include "workspace/disk_usage.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "workspace/test_tree.h"

namespace palmshed::workspace {
namespace {

DiskUsage Measure(const TestTree& tree, DiskAmount bound = kNoBound,
                  CountOnce once = CountOnce::kByLinks) {
  DiskUsage usage(bound, once);
  const std::array roots{tree.fd()};
  EXPECT_TRUE(usage.AddTrees(roots));
  return usage;
}

std::uint64_t BlocksOf(const TestTree& tree, const std::string& name) {
  return static_cast<std::uint64_t>(tree.Lstat(name).st_blocks) * 512;
}

TEST(DiskUsage, CountsAllocatedBlocksOfWholeTrees) {
  const TestTree tree;
  const DiskAmount empty = Measure(tree).amount();
  EXPECT_EQ(empty.inodes, 1U);
  tree.Write("file", std::string(100'000, 'x'));
  tree.Mkdir("dir");
  tree.Write("dir/other", std::string(5'000, 'y'));
  tree.Link("/etc/passwd", "dir/link");
  const DiskAmount full = Measure(tree).amount();
  EXPECT_EQ(full.inodes, 5U);
  EXPECT_EQ(full.bytes - empty.bytes,
            BlocksOf(tree, "file") + BlocksOf(tree, "dir") + BlocksOf(tree, "dir/other"));
  EXPECT_GE(full.bytes - empty.bytes, 105'000U);
  EXPECT_EQ(Measure(tree).largest(), 100'000U);
}

TEST(DiskUsage, HolesTakeNothing) {
  const TestTree tree;
  tree.Write("sparse", "x");
  ASSERT_EQ(::truncate(tree.At("sparse").c_str(), 1L << 40), 0);
  EXPECT_LT(Measure(tree).amount().bytes, 100'000U);
  EXPECT_EQ(Measure(tree).largest(), std::uint64_t{1} << 40);
}

// C083
TEST(DiskUsage, ManyNamesCountOnce) {
  const TestTree tree;
  tree.Write("h", std::string(1 << 20, 'x'));
  const DiskAmount once = Measure(tree).amount();
  tree.Mkdir("d");
  for (int i = 0; i < 50; ++i) tree.HardLink("h", "d/h" + std::to_string(i));
  for (const CountOnce how : {CountOnce::kByLinks, CountOnce::kAlways}) {
    const DiskAmount many = Measure(tree, kNoBound, how).amount();
    EXPECT_EQ(many.inodes, once.inodes + 1);
    EXPECT_LE(many.bytes, once.bytes + BlocksOf(tree, "d"));
  }
  // The control: a copy counts.
  tree.Write("copy", std::string(1 << 20, 'x'));
  EXPECT_GE(Measure(tree).amount().bytes, once.bytes + (1U << 20));
}

TEST(DiskUsage, EndsWithWhatIsOver) {
  const TestTree tree;
  for (int i = 0; i < 1000; ++i) tree.Write(std::to_string(i), "");
  const DiskUsage usage = Measure(tree, {.bytes = kNoBound.bytes, .inodes = 100});
  EXPECT_TRUE(usage.over());
  EXPECT_EQ(usage.amount().inodes, 101U);
  EXPECT_FALSE(Measure(tree, {.bytes = kNoBound.bytes, .inodes = 1001}).over());
}

TEST(DiskUsage, KnowsTheLatestBirth) {
  const TestTree tree;
  tree.Write("a", "x");
  const DiskUsage before = Measure(tree);
  if (!before.births_known()) GTEST_SKIP() << "this file system keeps no times of birth";
  // A tick of the clock that files get their times by.
  DiskUsage after = before;
  while (after.newest() == before.newest()) {
    ::unlink(tree.At("b").c_str());
    tree.Write("b", "x");
    after = Measure(tree);
  }
  EXPECT_GT(after.newest(), before.newest());
}

TEST(DiskUsage, FindsTheWayInDeepTrees) {
  const TestTree tree = TestTree::InMemory();
  UniqueFd at(::dup(tree.fd()));
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), "d", 0755), 0);
    ASSERT_EQ(::mkdirat(at.get(), "e", 0755), 0);
    at = UniqueFd(::openat(at.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  EXPECT_EQ(Measure(tree).amount().inodes, 10'001U);
}

TEST(DiskUsage, ClosedDirectoriesCountAndStayClosed) {
  const TestTree tree;
  const AsOrdinaryUser user(tree);
  tree.Mkdir("closed");
  tree.Write("closed/file", std::string(1 << 20, 'x'));
  ASSERT_EQ(::chmod(tree.At("closed").c_str(), 0), 0);
  EXPECT_GE(Measure(tree).amount().bytes, 1U << 20);
  EXPECT_EQ(tree.Mode("closed"), 0U);
  ASSERT_EQ(::chmod(tree.At("closed").c_str(), 0700), 0);
}

// What a program moves meanwhile leads nobody out of the tree, and is never counted twice when it
// is measured with care.
TEST(DiskUsage, MovingTreesNeitherLeadAstrayNorCountTwice) {
  const TestTree tree = TestTree::InMemory();
  tree.Mkdir("a");
  tree.Mkdir("b");
  std::string deep = "a/x";
  for (int i = 0; i < 60; ++i) {
    tree.Mkdir(deep);
    tree.Write(deep + "/f", std::string(4096, 'x'));
    deep += "/d";
  }
  const DiskAmount still = Measure(tree).amount();
  std::atomic<bool> stop = false;
  std::thread mover([&] {
    while (!stop) {
      (void)std::rename(tree.At("a/x").c_str(), tree.At("b/x").c_str());
      (void)std::rename(tree.At("b/x").c_str(), tree.At("a/x").c_str());
    }
  });
  int whole = 0;
  for (int i = 0; i < 300; ++i) {
    DiskUsage usage(kNoBound, CountOnce::kAlways);
    const std::array roots{tree.fd()};
    const auto added = usage.AddTrees(roots);
    EXPECT_LE(usage.amount().bytes, still.bytes);
    whole += added.has_value() ? 1 : 0;
  }
  stop = true;
  mover.join();
  EXPECT_GT(whole, 0);
}

// The design's own figure: tens of milliseconds at most.
TEST(DiskUsage, TenThousandFilesAreQuick) {
  const TestTree tree = TestTree::InMemory();
  for (int d = 0; d < 100; ++d) {
    tree.Mkdir(std::to_string(d));
    for (int f = 0; f < 100; ++f) tree.Write(std::to_string(d) + "/" + std::to_string(f), "x");
  }
  auto best = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 5; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(Measure(tree).amount().inodes, 10'101U);
    best = std::min(best, std::chrono::steady_clock::now() - begin);
  }
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(best).count();
  std::printf("10,000 files measured in %ld us\n", static_cast<long>(took));
  EXPECT_LT(took, 100'000);
}

}  // namespace
}  // namespace palmshed::workspace
