// A disk quota that is measured: what counts, what is killed, what is given back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "palmshed/palmshed.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = 1U << 20;

SandboxOptions Quota(Bytes size) { return {.disk_quota = size}; }

std::string Filler(int megabytes) {
  return std::string(static_cast<std::size_t>(megabytes) * kMiB, 'x');
}

constexpr char kManyFiles[] = "for i in $(seq 50); do head -c 20M /dev/zero > f$i; done; echo done";

class DiskQuota : public KernelTest {};

// C083
TEST_F(DiskQuota, OverwritingAndDeletingGiveRoomBack) {
  Sandbox sandbox = MakeSandbox(Quota(100_MiB));
  EXPECT_THAT(ExecShell(sandbox,
                        "for i in $(seq 20); do head -c 50M /dev/zero > a; done; rm a; "
                        "echo ok"),
              ExitedWith(0, "ok\n"));
  for (int i = 0; i < 20; ++i) Must(sandbox.WriteFile("a", Filler(50)));
  Must(sandbox.Remove("a"));
  Must(sandbox.WriteFile("b", Filler(90)));
}

// C083
TEST_F(DiskQuota, AFileOfManyNamesCountsOnce) {
  Sandbox sandbox = MakeSandbox(Quota(100_MiB));
  EXPECT_THAT(ExecShell(sandbox,
                        "head -c 40M /dev/zero > h; for i in $(seq 50); do ln h h$i; done; "
                        "echo links"),
              ExitedWith(0, "links\n"));
  // The control: copies count.
  EXPECT_THAT(ExecShell(sandbox, "cp h c1; cp h c2; cp h c3"), EndedBy(Cause::kDisk));
}

TEST_F(DiskQuota, WhoeverWritesMoreIsKilledAndWhatItMadeGoes) {
  Sandbox sandbox = MakeSandbox(Quota(100_MiB));
  Must(sandbox.WriteFile("kept", "mine"));
  const ExecResult result = ExecShell(sandbox, kManyFiles);
  EXPECT_THAT(result, EndedBy(Cause::kDisk));
  EXPECT_EQ(result.status, Status::kFailed);
  EXPECT_EQ(result.exit_code, -1);
  EXPECT_EQ(result.error_code(), "ERR_DISK_QUOTA_EXCEEDED");
  EXPECT_EQ(result.termination.limit, 100 * kMiB);
  EXPECT_GT(result.termination.observed.value_or(0), 100 * kMiB);
  EXPECT_EQ(Evidence(result, "rolledBack"), 1);
  std::printf("overshoot: %.1f MiB over a quota of 100 MiB\n",
              static_cast<double>(result.termination.observed.value_or(0)) / kMiB - 100);
  EXPECT_THAT(ExecShell(sandbox, "ls"), ExitedWith(0, "kept\nprobe\n"));
  // The sandbox has its room again.
  EXPECT_THAT(ExecShell(sandbox, "head -c 90M /dev/zero > a && echo ok"), ExitedWith(0, "ok\n"));
}

TEST_F(DiskQuota, OneFileEndsAtTheQuota) {
  Sandbox sandbox = MakeSandbox(Quota(100_MiB));
  EXPECT_THAT(ExecShell(sandbox, "head -c 300M /dev/zero > a"), EndedBy(Cause::kDisk));
  // A program that would rather be told gets EFBIG; with holes, nothing has been taken by then.
  EXPECT_THAT(ExecShell(sandbox, "truncate -s 90M a && echo ok"), ExitedWith(0, "ok\n"));
  const ExecResult told = ExecShell(sandbox, "trap '' XFSZ; truncate -s 110M a");
  EXPECT_THAT(told, ExitedWith(1, ""));
  EXPECT_THAT(told.err.bytes, HasSubstr("File too large"));
}

// C083. RLIMIT_FSIZE is about the size of a file, not about what is written.
TEST_F(DiskQuota, AFileLargerThanWhatIsLeftCanBeChangedAndWhatIsDeletedIsRoomAtOnce) {
  Sandbox sandbox = MakeSandbox(Quota(50_MiB));
  EXPECT_THAT(ExecShell(sandbox, "head -c 40M /dev/zero > a && echo ok"), ExitedWith(0, "ok\n"));
  EXPECT_THAT(ExecShell(sandbox,
                        "echo x >> a && dd if=/dev/zero of=a bs=1M seek=30 count=4 "
                        "conv=notrunc status=none && echo ok"),
              ExitedWith(0, "ok\n"));
  EXPECT_THAT(ExecShell(sandbox, "rm a && head -c 45M /dev/zero > b && echo ok"),
              ExitedWith(0, "ok\n"));
  // The control.
  EXPECT_THAT(ExecShell(sandbox, "head -c 30M /dev/zero > c"), EndedBy(Cause::kDisk));
}

TEST_F(DiskQuota, AFailureWithRoomLeftIsTheProgramsOwn) {
  Sandbox sandbox = MakeSandbox(Quota(100_MiB));
  const ExecResult result = ExecShell(sandbox, "head -c 50M /dev/zero > a; exit 3");
  EXPECT_THAT(result, EndedBy(Cause::kExited));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(Must(sandbox.Stat("a")).size, 50_MiB);
}

TEST_F(DiskQuota, FilesInTmpCount) {
  Sandbox sandbox = MakeSandbox(Quota(50_MiB));
  EXPECT_THAT(ExecShell(sandbox, "for i in $(seq 50); do head -c 5M /dev/zero > /tmp/f$i; done"),
              EndedBy(Cause::kDisk));
  EXPECT_THAT(ExecShell(sandbox, "ls /tmp"), ExitedWith(0, ""));
}

TEST_F(DiskQuota, FilesThatAreDeletedAndOpenCount) {
  Sandbox sandbox = MakeSandbox(Quota(100_MiB));
  const auto fill = [](const char* size) {
    return std::string("exec 3>a 4>b 5>c; rm a b c; for fd in 3 4 5; do head -c ") + size +
           " /dev/zero >&$fd; done; sleep 0.6; echo ok";
  };
  EXPECT_THAT(ExecShell(sandbox, fill("25M")), ExitedWith(0, "ok\n"));
  EXPECT_THAT(ExecShell(sandbox, fill("45M")), EndedBy(Cause::kDisk));
}

TEST_F(DiskQuota, WithAnotherAtWorkNothingIsTakenBackAndDeletingStillWorks) {
  Sandbox sandbox = MakeSandbox(Quota(50_MiB));
  Execution other = Must(sandbox.StartShell("echo up; sleep 60"));
  ASSERT_TRUE(AwaitOutput(other, "up"));
  const ExecResult result = ExecShell(sandbox, kManyFiles);
  EXPECT_THAT(result, EndedBy(Cause::kDisk));
  EXPECT_EQ(Evidence(result, "rolledBack"), 0);
  EXPECT_THAT(Must(other.Wait()), EndedBy(Cause::kDisk));
  // C083: a full sandbox can be emptied, from inside and by the API.
  EXPECT_THAT(sandbox.WriteFile("more", "x"), FailsWith(ErrorCode::kDiskQuotaExceeded));
  Must(sandbox.Remove("f1"));
  EXPECT_THAT(ExecShell(sandbox, "rm f*; echo ok"), ExitedWith(0, "ok\n"));
  Must(sandbox.WriteFile("more", Filler(40)));
}

TEST_F(DiskQuota, WritesOfTheApiAreRefusedBeforeTheyBegin) {
  Sandbox sandbox = MakeSandbox(Quota(50_MiB));
  const TempDir host;
  Must(sandbox.WriteFile("a", Filler(30)));
  EXPECT_THAT(sandbox.WriteFile("b", Filler(30)), FailsWith(ErrorCode::kDiskQuotaExceeded));
  EXPECT_THAT(sandbox.UploadFile(host.AddFile("big", Filler(30)), "b"),
              FailsWith(ErrorCode::kDiskQuotaExceeded));
  EXPECT_THAT(sandbox.UploadFile(host.path(), "tree"), FailsWith(ErrorCode::kDiskQuotaExceeded));
  EXPECT_THAT(ExecShell(sandbox, "ls"), ExitedWith(0, "a\nprobe\n"));
  // The control: what it takes the place of gives its room.
  Must(sandbox.UploadFile(host.path() + "/big", "a"));
  EXPECT_EQ(Must(sandbox.Stat("a")).size, 30_MiB);
}

TEST_F(DiskQuota, RoomCannotBeTakenWithoutWriting) {
  constexpr char kReserve[] =
      "python3 -c 'import fcntl,os,struct\n"
      "f=os.open(\"r\",os.O_RDWR|os.O_CREAT)\n"
      "try: fcntl.ioctl(f,0x40305828,struct.pack(\"=hh4xqqiI16x\",0,0,0,1<<20,0,0)); "
      "print(\"ok\")\n"
      "except OSError as e: print(e.strerror)'";
  Sandbox measured = MakeSandbox(Quota(100_MiB));
  EXPECT_THAT(ExecShell(measured, "fallocate -l 60M f").err.bytes, HasSubstr("not supported"));
  EXPECT_EQ(ExecShell(measured, kReserve).out.bytes, "Operation not supported\n");
  // The control.
  Sandbox free = MakeSandbox();
  EXPECT_THAT(ExecShell(free, "fallocate -l 60M f && echo ok"), ExitedWith(0, "ok\n"));
  EXPECT_EQ(ExecShell(free, kReserve).out.bytes, "ok\n");
}

// C092
TEST_F(DiskQuota, FloodOfEmptyFilesIsEndedAndGoesQuickly) {
  Sandbox sandbox = MakeSandbox(Quota(100_MiB));
  const ExecResult result =
      ExecShell(sandbox, "mkdir m; cd m; seq 1 300000 | xargs -n 2000 touch; echo made");
  EXPECT_THAT(result, EndedBy(Cause::kDisk));
  EXPECT_GT(Evidence(result, "disk_inodes").value_or(0), 25'600);
  const auto begin = std::chrono::steady_clock::now();
  Must(sandbox.Destroy());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

// C092
TEST_F(DiskQuota, TenThousandFilesAreNoFlood) {
  Sandbox sandbox = MakeSandbox(Quota(100_MiB));
  EXPECT_THAT(ExecShell(sandbox, "mkdir n; cd n; seq 1 10000 | xargs -n 1000 touch; echo made"),
              ExitedWith(0, "made\n"));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(Must(sandbox.List("n")).size(), 10'000U);
  EXPECT_THAT(ExecShell(sandbox, "ls n | wc -l"), ExitedWith(0, "10000\n"));
  Must(sandbox.Destroy());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(DiskQuotaOfAnOrdinaryUser, HoldsAndGivesBack) {
  AsOrdinaryUser([] {
    const TempDir root;
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine, Quota(50_MiB));
    const ExecResult result = ExecShell(sandbox, kManyFiles);
    EXPECT_THAT(result, EndedBy(Cause::kDisk));
    EXPECT_EQ(Evidence(result, "rolledBack"), 1);
    // A directory that its owner has closed hides nothing.
    EXPECT_THAT(ExecShell(sandbox,
                          "mkdir d; for i in $(seq 20); do chmod 700 d; head -c 8M "
                          "/dev/zero > d/$i; chmod 0 d; sleep 0.1; done"),
                EndedBy(Cause::kDisk));
  });
}

}  // namespace
}  // namespace palmshed::tests
