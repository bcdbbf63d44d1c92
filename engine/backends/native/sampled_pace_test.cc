#include "backends/native/sampled_pace.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace palmshed::backends::native {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::uint64_t kMiB = 1U << 20;
constexpr nanoseconds kCheap = microseconds(20);

TEST(MemoryPace, IdleIsLookedAtLessAndLessOften) {
  MemoryPace pace(64 * kMiB);
  (void)pace.Next(kMiB, true, milliseconds(1), kCheap);
  nanoseconds before{};
  for (int i = 0; i < 8; ++i) {
    const nanoseconds next = pace.Next(kMiB, false, milliseconds(10), kCheap);
    EXPECT_GE(next, before);
    before = next;
  }
  EXPECT_EQ(before, MemoryPace::kIdle);
  EXPECT_EQ(pace.Next(kMiB, true, before, kCheap), MemoryPace::kBusy) << "it runs again";
}

TEST(MemoryPace, GrowthIsFollowedSoThatTheLimitIsNotPassedUnseen) {
  MemoryPace pace(64 * kMiB);
  (void)pace.Next(kMiB, true, milliseconds(1), kCheap);
  // 4 MiB in 1 ms with 59 left: 14.75 ms until then.
  EXPECT_NEAR(static_cast<double>(pace.Next(5 * kMiB, true, milliseconds(1), kCheap).count()),
              3.69e6, 1e5);
  EXPECT_EQ(pace.Next(63 * kMiB, true, milliseconds(1), kCheap), MemoryPace::kShortest);
}

TEST(MemoryPace, NearTheLimitItIsLookedAtOftenWhileItRuns) {
  MemoryPace pace(64 * kMiB);
  (void)pace.Next(60 * kMiB, true, milliseconds(1), kCheap);
  EXPECT_EQ(pace.Next(60 * kMiB, true, milliseconds(2), kCheap), MemoryPace::kNear);
  EXPECT_GT(pace.Next(60 * kMiB, false, milliseconds(2), kCheap), MemoryPace::kNear);
}

TEST(MemoryPace, DearLooksAreRare) {
  MemoryPace pace(64 * kMiB);
  (void)pace.Next(kMiB, true, milliseconds(1), kCheap);
  EXPECT_GE(pace.Next(kMiB, true, milliseconds(1), milliseconds(5)), milliseconds(100));
  EXPECT_LE(pace.Next(kMiB, true, milliseconds(1), seconds(100)), seconds(1)) << "but not never";
}

TEST(MemoryPace, FirstLookIsNoEarlierThanThereCanBeSomethingToSee) {
  EXPECT_EQ(MemoryPace(kMiB).First(), MemoryPace::kShortest);
  EXPECT_GT(MemoryPace(64 * kMiB).First(), milliseconds(5));
  EXPECT_EQ(MemoryPace(1024 * kMiB).First(), MemoryPace::kBusy);
}

TEST(NextCpuLook, IsWhenTheRestCouldBeUsedUp) {
  EXPECT_EQ(NextCpuLook(seconds(2), seconds(1), 4, seconds(1)), milliseconds(250));
  EXPECT_EQ(NextCpuLook(seconds(2), seconds(1), 1, milliseconds(20)), milliseconds(20));
  EXPECT_LE(NextCpuLook(seconds(2), seconds(2), 2, seconds(1)) * 2, milliseconds(50));
  EXPECT_GT(NextCpuLook(seconds(2), seconds(3), 1000, seconds(1)), microseconds(100));
  EXPECT_GT(NextCpuLook(seconds(2), seconds(0), 0, seconds(9)), seconds(1));
}

}  // namespace
}  // namespace palmshed::backends::native
