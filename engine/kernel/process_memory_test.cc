#include "kernel/process_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/sys.h"
#include "base/unique_fd.h"
#include "kernel/test_namespace.h"

namespace palmshed::kernel {
namespace {

constexpr std::uint64_t kMiB = 1U << 20;
constexpr std::uint64_t kSize = 16 * kMiB;

TEST(ParseStatm, AnonymousIsWhatIsNotShared) {
  const auto pages = ParseStatm("1000 300 100 5 0 400 0\n", 4096);
  ASSERT_TRUE(pages);
  EXPECT_EQ(pages->anonymous, 200U * 4096);
  EXPECT_EQ(pages->shared, 100U * 4096);
  EXPECT_FALSE(ParseStatm("", 4096));
  EXPECT_FALSE(ParseStatm("1000 300", 4096));
}

TEST(SumSysv, ResidentAndSwappedBytesOfEachSegmentCount) {
  EXPECT_EQ(SumSysv("       key      shmid perms ... rss swap\n"
                    "         0          0   600 4096 1 2 0 3 4 5 6 7 8 9 8192 100\n"
                    "         0          1   600 4096 1 2 0 3 4 5 6 7 8 9 4096 0\n"),
            8192U + 100 + 4096);
  EXPECT_EQ(SumSysv("header only\n"), 0U);
}

TEST(SumOtherShmem, OnlyWhatIsNotCountedElsewhere) {
  const std::string smaps =
      "7f0000000000-7f0000100000 rw-s 00000000 00:01 77  /memfd:a (deleted)\n"
      "Size: 1024 kB\nPss:  100 kB\nPss_Dirty: 5 kB\nVmFlags: rd wr\n"
      "7f0000200000-7f0000300000 rw-s 00000000 00:01 78  /dev/zero (deleted)\n"
      "Pss:   10 kB\n"
      "7f0000400000-7f0000500000 rw-s 00000000 00:01 2  /SYSV00000000 (deleted)\n"
      "Pss:    1 kB\n"
      "7f0000600000-7f0000700000 rw-s 00000000 00:2a 9  /dev/shm/x\n"
      "Pss: 5000 kB\n"
      "7f0000800000-7f0000900000 rw-p 00000000 00:00 0 \n"
      "Pss: 6000 kB\n";
  EXPECT_EQ(SumOtherShmem(smaps, 1, {}, false), 111U * 1024);
  EXPECT_EQ(SumOtherShmem(smaps, 1, {}, true), 110U * 1024);
  const std::map<ShmemFile, std::uint64_t> counted{{{.device = 1, .inode = 77}, 1}};
  EXPECT_EQ(SumOtherShmem(smaps, 1, counted, true), 10U * 1024);
}

class ProcessMemory : public ::testing::Test {
 protected:
  UniqueFd proc_{::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  std::string self_ = std::to_string(::getpid());
};

// A mapping that is there, every page of it.
std::span<std::byte> Map(int flags, int fd = -1) {
  void* const at = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, flags | MAP_POPULATE, fd, 0);
  EXPECT_NE(at, MAP_FAILED);
  std::memset(at, 1, kSize);
  return {static_cast<std::byte*>(at), kSize};
}

void Unmap(std::span<std::byte> mapping) { (void)::munmap(mapping.data(), mapping.size()); }

TEST_F(ProcessMemory, AnonymousMemoryShowsAtEachPrecision) {
  const auto rough = ReadResident(proc_.get(), self_);
  const auto plain = ReadResidentUse(proc_.get(), self_);
  const auto exact = ReadProportionalUse(proc_.get(), self_);
  ASSERT_TRUE(rough && plain && exact);
  const auto mapping = Map(MAP_PRIVATE | MAP_ANONYMOUS);
  const double size = kSize;
  EXPECT_NEAR(static_cast<double>(ReadResident(proc_.get(), self_)->anonymous - rough->anonymous),
              size, 1.0 * kMiB);
  EXPECT_NEAR(
      static_cast<double>(ReadResidentUse(proc_.get(), self_)->anonymous - plain->anonymous), size,
      1.0 * kMiB);
  EXPECT_NEAR(
      static_cast<double>(ReadProportionalUse(proc_.get(), self_)->anonymous - exact->anonymous),
      size, 1.0 * kMiB);
  Unmap(mapping);
}

TEST_F(ProcessMemory, SharedMemoryIsNotAnonymousAndPageCacheIsNeither) {
  const auto before = ReadProportionalUse(proc_.get(), self_);
  ASSERT_TRUE(before);
  const auto shared = Map(MAP_SHARED | MAP_ANONYMOUS);
  const auto with = ReadProportionalUse(proc_.get(), self_);
  EXPECT_EQ(with->shmem - before->shmem, kSize);
  EXPECT_LT(with->anonymous - before->anonymous, kMiB);
  EXPECT_EQ(ReadResidentUse(proc_.get(), self_)->shmem - before->shmem, kSize);
  const auto device = MemfdDevice();
  ASSERT_TRUE(device);
  EXPECT_GE(*ReadOtherShmem(proc_.get(), self_, *device, {}, false), kSize);
  Unmap(shared);
  EXPECT_LT(*ReadOtherShmem(proc_.get(), self_, *device, {}, false), kSize);
}

TEST_F(ProcessMemory, MemfdCountsOnceWhoeverHoldsItAndOnlyWhatIsAllocated) {
  const auto device = MemfdDevice();
  const auto memfd = sys::MemfdCreate("test", false);
  ASSERT_TRUE(device && memfd);
  ASSERT_EQ(::ftruncate(memfd->get(), static_cast<off_t>(10 * kSize)), 0);
  const UniqueFd again(::dup(memfd->get()));
  std::map<ShmemFile, std::uint64_t> found;
  ASSERT_TRUE(AddMemfds(proc_.get(), self_, *device, found));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.begin()->second, 0U) << "it has holes only";
  ASSERT_EQ(::posix_fallocate(memfd->get(), 0, static_cast<off_t>(kSize)), 0);
  ASSERT_TRUE(AddMemfds(proc_.get(), self_, *device, found));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.begin()->second, kSize);
}

TEST_F(ProcessMemory, SegmentsOfANamespaceAreReadThroughADescriptorFromInside) {
  const Steps made;
  const Steps end;
  auto sockets = sys::SocketPair();
  ASSERT_TRUE(sockets);
  const TestNamespace space({[&] {
    const UniqueFd table(::open("/proc/sysvipc/shm", O_RDONLY | O_CLOEXEC));
    const std::array<BorrowedFd, 1> fds{table.get()};
    const std::byte byte{1};
    if (!sys::SendMessage(sockets->second.get(), {&byte, 1}, fds)) return 1;
    const int segment = ::shmget(IPC_PRIVATE, kSize, IPC_CREAT | 0600);
    void* const at = ::shmat(segment, nullptr, 0);
    std::memset(at, 1, kSize);
    (void)::shmdt(at);  // From here on no process shows it.
    made.Done();
    return end.Await() ? 0 : 1;
  }});
  space.Go(0);
  ASSERT_TRUE(made.Await());
  std::byte byte{};
  auto message = sys::ReceiveMessage(sockets->first.get(), {&byte, 1});
  ASSERT_TRUE(message);
  ASSERT_EQ(message->fds.size(), 1U);
  EXPECT_EQ(*SysvUse(message->fds[0].get()), kSize);
  const UniqueFd ours(::open("/proc/sysvipc/shm", O_RDONLY | O_CLOEXEC));
  EXPECT_LT(*SysvUse(ours.get()), kSize) << "the host's own table is another";
}

TEST_F(ProcessMemory, DeletedFilesInMemoryCountWhileTheyAreOpen) {
  const Steps made;
  const Steps end;
  const TestNamespace space({[&] {
    const int fd = ::open("/dev/shm/x", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    (void)::unlink("/dev/shm/x");
    if (::posix_fallocate(fd, 0, static_cast<off_t>(kSize)) != 0) return 1;
    made.Done();
    return end.Await() ? 0 : 1;
  }});
  const UniqueFd shm = space.OpenInside("/dev/shm");
  EXPECT_EQ(*TmpfsUse(shm.get()), 0U);
  space.Go(0);
  ASSERT_TRUE(made.Await());
  EXPECT_EQ(*TmpfsUse(shm.get()), kSize);
  end.Done();
  ASSERT_TRUE(space.AwaitEnd());
  EXPECT_EQ(*TmpfsUse(shm.get()), 0U);
}

}  // namespace
}  // namespace palmshed::kernel
