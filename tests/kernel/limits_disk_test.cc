// Disk quotas and the file operations of the API, many of them at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/kernel_test.h"

namespace palmshed::tests {
namespace {

const std::string& OneMebibyte() {
  static const std::string filler(1U << 20, 'x');
  return filler;
}

/// In MiB, of all files together.
std::uint64_t Used(Sandbox& sandbox) {
  std::uint64_t used = 0;
  for (const DirEntry& entry : Must(sandbox.List("."))) {
    used += Count(Must(sandbox.Stat(entry.name)).size);
  }
  return used >> 20;
}

class LimitsOfFiles : public KernelTest {
 protected:
  /// How many of so many writes of a MiB each got through.
  static int Write(Sandbox& sandbox, const std::string& prefix, int count) {
    int written = 0;
    for (int i = 0; i < count; ++i) {
      const auto done = sandbox.WriteFile(prefix + std::to_string(i), OneMebibyte());
      written += done ? 1 : 0;
      if (!done) {
        EXPECT_EQ(done.error().code, ErrorCode::kDiskQuotaExceeded);
      }
    }
    return written;
  }
  static void WriteBesideAProgramUntilItEnds(Sandbox& sandbox) {
    Execution writing = Must(sandbox.StartShell(
        "i=0; while [ $i -lt 200 ]; do i=$((i+1)); head -c 1M /dev/zero > p$i; echo $i; done"));
    ASSERT_TRUE(AwaitOutput(writing, "2\n"));
    const int written = Write(sandbox, "a", 100);
    EXPECT_LT(written, 100);
    EXPECT_THAT(Must(writing.Wait()), EndedBy(Cause::kDisk));
  }
};

// C049
TEST_F(LimitsOfFiles, WritesOneAfterAnotherEndAtTheQuota) {
  Sandbox sandbox = MakeSandbox({.disk_quota = 10_MiB});
  const int written = Write(sandbox, "f", 20);
  EXPECT_GE(written, 8);
  EXPECT_LE(written, 10);
  EXPECT_EQ(Must(sandbox.List(".")).size(), static_cast<std::size_t>(written) + 1);  // ./probe
}

// C049: what is there stays, whole, when its successor does not fit.
TEST_F(LimitsOfFiles, RefusedOverwriteLeavesTheOldContent) {
  Sandbox sandbox = MakeSandbox({.disk_quota = 20_MiB});
  const std::string old(16U << 20, 'o');
  Must(sandbox.WriteFile("file", old));
  EXPECT_THAT(sandbox.WriteFile("file", std::string(22U << 20, 'n')),
              FailsWith(ErrorCode::kDiskQuotaExceeded));
  EXPECT_TRUE(Must(sandbox.ReadFile("file")) == old);
  EXPECT_EQ(Must(sandbox.List(".")).size(), 2U);
}

// C049
TEST_F(LimitsOfFiles, WritesAtOnceShareTheQuota) {
  Sandbox sandbox = MakeSandbox({.disk_quota = 10_MiB});
  std::atomic<int> written = 0;
  {
    std::vector<std::jthread> writers;
    for (int i = 0; i < 16; ++i) {
      writers.emplace_back([&, i] { written += Write(sandbox, "w" + std::to_string(i) + ".", 1); });
    }
  }
  EXPECT_GE(written, 8);  // As one after another: none is refused for what others only ask for.
  EXPECT_LE(written, 10);
  EXPECT_LE(Used(sandbox), 10U);
}

// C049
TEST_F(LimitsOfFiles, WritesBesideAProgramThatWritesLeaveRoomOnceTheyAreDeleted) {
  Sandbox sandbox = MakeSandbox({.disk_quota = 100_MiB});
  WriteBesideAProgramUntilItEnds(sandbox);
  EXPECT_THAT(ExecShell(sandbox, "rm -f p* a*; echo emptied"), ExitedWith(0, "emptied\n"));
  EXPECT_THAT(ExecShell(sandbox, "head -c 75M /dev/zero > big && echo room"),
              ExitedWith(0, "room\n"));
}

// C049
TEST_F(LimitsOfFiles, WritesBesideAProgramThatWritesStayWithinTheQuota) {
  Sandbox sandbox = MakeSandbox({.disk_quota = 100_MiB});
  WriteBesideAProgramUntilItEnds(sandbox);
  // A fifth more is the overshoot that is promised.
  EXPECT_LE(Used(sandbox), 120U);
}

// C029: after its end a deleted file has given its room back, and nobody else is blamed for it.
TEST_F(LimitsOfFiles, RoomOfDeletedFilesComesBackWithTheEndOfWhoHeldThem) {
  Sandbox sandbox = MakeSandbox({.disk_quota = 20_MiB});
  const char* kHold = "exec 3>gone; rm gone; head -c 12M /dev/zero >&3; echo held";
  for (int i = 0; i < 4; ++i) EXPECT_THAT(ExecShell(sandbox, kHold), ExitedWith(0, "held\n"));
  EXPECT_THAT(ExecShell(sandbox,
                        "exec 3>one 4>two; rm one two; head -c 12M /dev/zero >&3; "
                        "head -c 12M /dev/zero >&4; sleep 5; echo held"),
              EndedBy(Cause::kDisk));
  EXPECT_THAT(ExecShell(sandbox, "head -c 12M /dev/zero > kept && echo room"),
              ExitedWith(0, "room\n"));
}

// C031: eight writers at once, and what was sparse.
TEST_F(LimitsOfFiles, FastWritersAreStoppedWithinAFifthAndGiveItBack) {
  Sandbox sandbox = MakeSandbox({.disk_quota = 100_MiB});
  const ExecResult result =
      ExecShell(sandbox, "for i in 1 2 3 4 5 6 7 8; do head -c 2G /dev/zero > f$i & done; wait");
  EXPECT_THAT(result, EndedBy(Cause::kDisk));
  EXPECT_LE(result.termination.observed.value_or(0), Count(120_MiB));
  EXPECT_LE(Used(sandbox), 1U);
  EXPECT_THAT(ExecShell(sandbox, "head -c 500M /dev/zero > t && echo over"), EndedBy(Cause::kDisk));
}

}  // namespace
}  // namespace palmshed::tests
