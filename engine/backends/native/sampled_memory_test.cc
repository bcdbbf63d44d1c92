#include "backends/native/sampled_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/native/sampled_members.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "kernel/process_memory.h"
#include "kernel/process_table.h"
#include "kernel/test_namespace.h"

namespace palmshed::backends::native {
namespace {

using kernel::Steps;
using kernel::TestNamespace;

constexpr std::uint64_t kMiB = 1U << 20;
constexpr std::uint64_t kSize = 32 * kMiB;
// What a child of this program has anyway, and what a walk that is not exact may be off by.
constexpr std::uint64_t kSlack = 6 * kMiB;

char* Take(int flags, int fd = -1) {
  void* const at = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (at == MAP_FAILED) ::_exit(99);
  std::memset(at, 1, kSize);
  return static_cast<char*>(at);
}

// Whether the calling process's first thread has ended.
bool IsZombie() {
  const auto stat = kernel::ParseProcessStat(*sys::ReadFile("/proc/self/stat"));
  return stat && stat->state == 'Z';
}

// Runs a body, which says when it is ready to be measured, in a namespace.
class MemoryMeterTest : public ::testing::Test {
 protected:
  /// `body` goes on to wait for the end by itself.
  void Run(const std::function<void()>& body) {
    space_ = std::make_unique<TestNamespace>(std::vector<TestNamespace::Body>{[this, body] {
      body();
      ready_.Done();
      return end_.Await() ? 0 : 1;
    }});
    auto table = kernel::ProcessTable::OfNamespace(space_->init());
    ASSERT_TRUE(table) << table.error().message;
    table_ = std::make_unique<kernel::ProcessTable>(*std::move(table));
    places_.proc = table_->directory();
    places_.memfd_device = *kernel::MemfdDevice();
    places_.tmpfs.push_back(space_->OpenInside("/dev/shm"));
    members_.Add(1, table_->Stat(*table_->NumberOf(space_->child(0)))->id);
    ASSERT_TRUE(meter_.Begin(places_));
    before_ = Measure(0);
    space_->Go(0);
    ASSERT_TRUE(ready_.Await());
  }
  std::uint64_t Measure(std::uint64_t limit) {
    const auto all = table_->Read();
    const auto census = members_.Update(*all, [](pid_t) { return true; });
    const auto reading = meter_.Measure(places_, census.at(1), limit);
    EXPECT_TRUE(reading) << reading.error().message;
    return reading ? reading->at_least : 0;
  }
  /// With the limit below, so that the exact value is asked for.
  std::uint64_t Grown(std::uint64_t limit = kSize / 2) {
    const std::uint64_t now = Measure(limit);
    return now - std::min(now, before_);
  }
  static void ExpectAbout(std::uint64_t bytes, std::uint64_t expected) {
    EXPECT_NEAR(static_cast<double>(bytes), static_cast<double>(expected),
                static_cast<double>(kSlack));
  }

  Steps ready_;
  Steps end_;
  std::unique_ptr<TestNamespace> space_;
  std::unique_ptr<kernel::ProcessTable> table_;
  Members members_;
  MemoryPlaces places_;
  MemoryMeter meter_;
  std::uint64_t before_ = 0;
};

TEST_F(MemoryMeterTest, AnonymousMemoryCounts) {
  Run([] { (void)Take(MAP_PRIVATE | MAP_ANONYMOUS); });
  ExpectAbout(Grown(), kSize);
  ExpectAbout(meter_.peak(), kSize);
}

TEST_F(MemoryMeterTest, WhatForksShareCountsOnceAndWhatTheyWriteCountsAgain) {
  Run([] {
    char* const memory = Take(MAP_PRIVATE | MAP_ANONYMOUS);
    for (int i = 0; i < 3; ++i) {
      const Steps touched;
      if (::fork() == 0) {
        if (i == 0) std::memset(memory, 2, kSize);
        touched.Done();
        ::pause();
      }
      (void)touched.Await();
    }
  });
  ExpectAbout(Grown(), 2 * kSize);
}

// C079
TEST_F(MemoryMeterTest, PageCacheDoesNotCount) {
  std::string path = ::testing::TempDir() + "/palmshed-cache-XXXXXX";
  const UniqueFd file(::mkostemp(path.data(), O_CLOEXEC));
  ASSERT_EQ(::posix_fallocate(file.get(), 0, static_cast<off_t>(kSize)), 0);
  Run([&] { (void)Take(MAP_SHARED, file.get()); });
  EXPECT_LT(Grown(), kSlack);
  (void)::unlink(path.c_str());
}

TEST_F(MemoryMeterTest, MemfdThatIsNotMappedCountsOnceForAllWhoHoldIt) {
  Run([] {
    const int memfd = ::memfd_create("held", 0);
    if (::posix_fallocate(memfd, 0, static_cast<off_t>(kSize)) != 0) ::_exit(1);
    if (::dup(memfd) < 0) ::_exit(1);
    if (::fork() == 0) ::pause();
  });
  ExpectAbout(Grown(), kSize);
}

TEST_F(MemoryMeterTest, MemfdThatIsMappedAndHeldCountsOnce) {
  Run([] {
    const int memfd = ::memfd_create("both", 0);
    if (::ftruncate(memfd, static_cast<off_t>(kSize)) != 0) ::_exit(1);
    (void)Take(MAP_SHARED, memfd);
  });
  // Between what is there and twice that: the bounds straddle it.
  ExpectAbout(Grown(kSize + kSize / 2), kSize);
  ExpectAbout(Grown(), kSize);
}

TEST_F(MemoryMeterTest, MemfdThatIsOnlyMappedCounts) {
  Run([] {
    const int memfd = ::memfd_create("mapped", 0);
    if (::ftruncate(memfd, static_cast<off_t>(kSize)) != 0) ::_exit(1);
    (void)Take(MAP_SHARED, memfd);
    (void)::close(memfd);
  });
  ExpectAbout(Grown(), kSize);
}

TEST_F(MemoryMeterTest, DifferentKindsOfSharedMemoryAddUp) {
  Run([] {
    const int memfd = ::memfd_create("held", 0);
    if (::posix_fallocate(memfd, 0, static_cast<off_t>(kSize)) != 0) ::_exit(1);
    (void)Take(MAP_SHARED | MAP_ANONYMOUS);
  });
  ExpectAbout(Grown(kSize + kSize / 2), 2 * kSize);
}

TEST_F(MemoryMeterTest, FilesInMemoryCountMappedOrNotNamedOrNot) {
  Run([] {
    const int file = ::open("/dev/shm/x", O_RDWR | O_CREAT, 0600);
    (void)::unlink("/dev/shm/x");
    if (::posix_fallocate(file, 0, static_cast<off_t>(kSize)) != 0) ::_exit(1);
    (void)Take(MAP_SHARED, file);
  });
  ExpectAbout(Grown(kSize + kSize / 2), kSize);
  ExpectAbout(Grown(), kSize);
}

TEST_F(MemoryMeterTest, WhatAnEarlierExecutionLeftDoesNotCount) {
  Run([] {
    const int file = ::open("/dev/shm/x", O_RDWR | O_CREAT, 0600);
    if (::posix_fallocate(file, 0, static_cast<off_t>(kSize)) != 0) ::_exit(1);
  });
  ASSERT_TRUE(meter_.Begin(places_));
  EXPECT_LT(Grown(), kSlack);
  EXPECT_LT(meter_.peak(), kSize);
}

TEST_F(MemoryMeterTest, MemoryOfThreadsWhoseFirstHasEndedCounts) {
  Run([this] {
    std::thread([this] {
      (void)Take(MAP_PRIVATE | MAP_ANONYMOUS);
      while (!IsZombie()) ::sched_yield();
      ready_.Done();
      (void)end_.Await();
      ::_exit(0);
    }).detach();
    ::syscall(SYS_exit, 0);
  });
  ExpectAbout(Grown(), kSize);
}

// Else a parent of more than half the limit would be killed whenever it starts a program.
TEST_F(MemoryMeterTest, ChildOfVforkDoesNotCountTwice) {
  Run([this] {
    (void)Take(MAP_PRIVATE | MAP_ANONYMOUS);
    if (::syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, nullptr, nullptr, nullptr,
                  nullptr) == 0) {
      ready_.Done();
      (void)end_.Await();
      ::_exit(0);
    }
  });
  ExpectAbout(Grown(), kSize);
}

TEST_F(MemoryMeterTest, DetachedSegmentCountsOnlyWhereTheTableIsKnown) {
  auto sockets = sys::SocketPair();
  ASSERT_TRUE(sockets);
  Run([&] {
    const UniqueFd table(::open("/proc/sysvipc/shm", O_RDONLY | O_CLOEXEC));
    const BorrowedFd fds[] = {table.get()};
    const std::byte byte{1};
    (void)sys::SendMessage(sockets->second.get(), {&byte, 1}, fds);
    const int segment = ::shmget(IPC_PRIVATE, kSize, IPC_CREAT | 0600);
    void* const at = ::shmat(segment, nullptr, 0);
    std::memset(at, 1, kSize);
    (void)::shmdt(at);
  });
  EXPECT_LT(Grown(), kSlack) << "the known way out";
  std::byte byte{};
  const auto message = sys::ReceiveMessage(sockets->first.get(), {&byte, 1});
  ASSERT_EQ(message->fds.size(), 1U);
  places_.sysv = message->fds[0].get();
  ExpectAbout(Grown(), kSize);
}

}  // namespace
}  // namespace palmshed::backends::native
