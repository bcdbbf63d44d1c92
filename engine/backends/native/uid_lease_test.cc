#include "backends/native/uid_lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "workspace/test_tree.h"

namespace palmshed::backends::native {
namespace {

using ::testing::HasSubstr;
using workspace::TestTree;

class UidRangeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    tree_.Write("passwd", "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n");
    tree_.Write("group", "root:x:0:\n");
    tree_.Write("uid_map", "         0          0 4294967295\n");
    tree_.Write("gid_map", "         0          0 4294967295\n");
  }
  Result<UidRange> Choose() const {
    return ChooseUidRange({.passwd = tree_.At("passwd"),
                           .group = tree_.At("group"),
                           .subuid = tree_.At("subuid"),
                           .subgid = tree_.At("subgid"),
                           .uid_map = tree_.At("uid_map"),
                           .gid_map = tree_.At("gid_map")});
  }
  void ExpectRefused(const char* why) const {
    const auto range = Choose();
    ASSERT_FALSE(range) << why;
    EXPECT_EQ(range.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(range.error().message, HasSubstr(why));
    EXPECT_THAT(range.error().remedy, HasSubstr("/etc/subuid"));
  }

  TestTree tree_;
};

TEST_F(UidRangeTest, DefaultIsUsedWithoutAnEntry) {
  tree_.Write("subuid", "ann:100000:65536\n");
  const auto range = Choose();
  ASSERT_TRUE(range) << range.error().message;
  EXPECT_EQ(range->start, kDefaultUidRange.start);
  EXPECT_EQ(range->count, kDefaultUidRange.count);
}

TEST_F(UidRangeTest, TheEntryWins) {
  tree_.Write("subuid", "ann:100000:65536\npalmshed:300000:1000\n");
  tree_.Write("subgid", "palmshed:300000:1000\n");
  const auto range = Choose();
  ASSERT_TRUE(range) << range.error().message;
  EXPECT_EQ(range->start, 300000U);
  EXPECT_EQ(range->count, 1000U);
}

TEST_F(UidRangeTest, DefaultMovesOutOfTheWay) {
  const std::uint32_t next = kDefaultUidRange.start + kDefaultUidRange.count;
  tree_.Write("subgid", "ann:" + std::to_string(kDefaultUidRange.start + 5) + ":10\n");
  EXPECT_EQ(Choose()->start, next);
  tree_.Write("group", "g:x:" + std::to_string(next + 7) + ":\n");
  EXPECT_EQ(Choose()->start, next + kDefaultUidRange.count);
  tree_.Write("subuid", "ann:" + std::to_string(kDefaultUidRange.start) + ":4000000\n");
  ExpectRefused("overlaps");
}

TEST_F(UidRangeTest, BadEntriesAreRefused) {
  tree_.Write("subuid", "palmshed:0:100\n");
  ExpectRefused("root");
  tree_.Write("subuid", "palmshed:65000:1000\n");
  ExpectRefused("nobody");
  tree_.Write("subuid", "palmshed:2147483000:1000\n");
  ExpectRefused("2147483647");
  tree_.Write("subuid", "palmshed:900:200\n");
  ExpectRefused("overlaps");
  tree_.Write("subuid", "palmshed:300000:0\n");
  ExpectRefused("empty");
  tree_.Write("subuid", "palmshed:300000:1000\nann:300999:5\n");
  ExpectRefused("overlaps");
}

TEST_F(UidRangeTest, IdsThatThisNamespaceLacksAreRefused) {
  tree_.Write("uid_map", "0 100000 65536\n");
  ExpectRefused("user namespace");
  tree_.Write("subuid", "palmshed:20000:1000\n");
  EXPECT_EQ(Choose()->start, 20000U);
  tree_.Write("gid_map", "0 100000 20500\n");
  ExpectRefused("user namespace");
}

TEST_F(UidRangeTest, ThisHostHasOne) {
  const auto range = ChooseUidRange({});
  if (!range) GTEST_SKIP() << range.error().message;
  EXPECT_GT(range->start, 0U);
  EXPECT_GT(range->count, 0U);
}

TEST(UidLease, NoUidTwiceWhileItIsHeld) {
  TestTree tree;
  std::vector<UidLease> held;
  std::set<std::uint32_t> uids;
  for (int i = 0; i < 20; ++i) {
    auto lease = UidLease::Take(tree.fd(), {.start = 500, .count = 20});
    ASSERT_TRUE(lease) << lease.error().message;
    EXPECT_GE(lease->uid(), 500U);
    EXPECT_LT(lease->uid(), 520U);
    EXPECT_TRUE(uids.insert(lease->uid()).second) << lease->uid();
    held.push_back(std::move(*lease));
  }
  const auto more = UidLease::Take(tree.fd(), {.start = 500, .count = 20});
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, ErrorCode::kOverloaded);
  const std::uint32_t freed = held[7].uid();
  held[7].TakeLock().reset();
  EXPECT_EQ(UidLease::Take(tree.fd(), {.start = 500, .count = 20})->uid(), freed);
}

TEST(UidLease, OtherProcessesSeeIt) {
  TestTree tree;
  const UidRange one{.start = 700, .count = 1};
  auto lease = UidLease::Take(tree.fd(), one);
  ASSERT_TRUE(lease);
  const auto can_take = [&] {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(UidLease::Take(tree.fd(), one) ? 0 : 1);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status == 0;
  };
  EXPECT_FALSE(can_take());
  lease->TakeLock().reset();
  EXPECT_TRUE(can_take()) << "control";
}

TEST(UidLease, ADuplicateKeepsItHeld) {
  TestTree tree;
  const UidRange one{.start = 700, .count = 1};
  auto lease = UidLease::Take(tree.fd(), one);
  ASSERT_TRUE(lease);
  UniqueFd lock = lease->TakeLock();
  UniqueFd copy(::dup(lock.get()));  // As init's, after the engine has closed its own.
  lock.reset();
  EXPECT_FALSE(UidLease::Take(tree.fd(), one));
  copy.reset();
  EXPECT_TRUE(UidLease::Take(tree.fd(), one));
}

}  // namespace
}  // namespace palmshed::backends::native
