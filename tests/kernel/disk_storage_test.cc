// Storage of a fixed size: the file system itself says that it is full.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "palmshed/palmshed.h"
#include "support/eventually.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::HasSubstr;

SandboxOptions Sized(Storage storage) { return {.disk_quota = 64_MiB, .storage = storage}; }

void ExpectHardLimit(Sandbox& sandbox) {
  const ExecResult full = ExecShell(sandbox, "head -c 200M /dev/zero > a");
  EXPECT_THAT(full, EndedBy(Cause::kDisk));
  EXPECT_THAT(full.err.bytes, HasSubstr("No space left on device"));
  EXPECT_EQ(full.error_code(), "ERR_DISK_QUOTA_EXCEEDED");
  // Nothing is killed for it, and whoever copes has not failed.
  EXPECT_THAT(ExecShell(sandbox, "head -c 1M /dev/zero > /tmp/b 2>/dev/null || echo full"),
              ExitedWith(0, "full\n"));
  EXPECT_THAT(sandbox.WriteFile("c", std::string(1 << 20, 'x')),
              FailsWith(ErrorCode::kDiskQuotaExceeded));
  EXPECT_THAT(ExecShell(sandbox, "rm a /tmp/b; head -c 40M /dev/zero > a && echo ok"),
              ExitedWith(0, "ok\n"));
  Must(sandbox.Remove("a"));
  Must(sandbox.WriteFile("c", std::string(40 << 20, 'x')));
  EXPECT_THAT(ExecShell(sandbox, "exit 3"), EndedBy(Cause::kExited));
}

/// Files of the program and of the API are the same, and belong to the program.
void ExpectUsable(Sandbox& sandbox) {
  Must(sandbox.WriteFile("dir/file", "of the API\n"));
  EXPECT_THAT(ExecShell(sandbox,
                        "cat dir/file; stat -c %U dir dir/file; pwd; echo inside > own; "
                        "echo x > /tmp/t; stat -c %a /tmp"),
              ExitedWith(0, "of the API\nsandbox\nsandbox\n/workspace\n1777\n"));
  EXPECT_EQ(Must(sandbox.ReadFile("own")), "inside\n");
  EXPECT_THAT(ExecShell(sandbox, "ls"), ExitedWith(0, "dir\nown\nprobe\n"));
  EXPECT_THAT(Exec(sandbox, {"./probe", "mount-flags", "/workspace"}),
              ExitedWith(0, "rw nosuid nodev\n"));
}

class DiskStorage : public KernelTest {};

TEST_F(DiskStorage, InMemoryIsHard) {
  Sandbox sandbox = MakeSandbox(Sized(Storage::kMemory));
  ExpectUsable(sandbox);
  ExpectHardLimit(sandbox);
}

TEST_F(DiskStorage, InMemoryLeavesNothingOnTheDisk) {
  Sandbox sandbox = MakeSandbox(Sized(Storage::kMemory));
  ASSERT_TRUE(ExecShell(sandbox, "echo x > file; echo x > /tmp/file").ok());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(workspaces())) {
    EXPECT_NE(entry.path().filename(), "file");
  }
}

TEST_F(DiskStorage, BoundsTheNumberOfFiles) {
  Sandbox sandbox = MakeSandbox(Sized(Storage::kMemory));
  EXPECT_THAT(ExecShell(sandbox, "seq 1 30000 | xargs -n 1000 touch"), EndedBy(Cause::kDisk));
}

TEST(DiskStorageOfAnOrdinaryUser, InMemoryIsHardAndLoopIsRefused) {
  AsOrdinaryUser([] {
    const TempDir root;
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine, Sized(Storage::kMemory));
    ExpectUsable(sandbox);
    ExpectHardLimit(sandbox);
    EXPECT_THAT(engine.CreateSandbox(Sized(Storage::kLoop)), FailsWith(ErrorCode::kUnsupported));
  });
}

/// Devices whose image is below `directory`.
int LoopDevicesOn(const std::string& directory) {
  int found = 0;
  for (const auto& device : std::filesystem::directory_iterator("/sys/block")) {
    const std::string file = SlurpIfThere(device.path().string() + "/loop/backing_file");
    found += file.starts_with(directory) ? 1 : 0;
  }
  return found;
}

class LoopStorage : public KernelTest {};

TEST_F(LoopStorage, IsHard) {
  PALMSHED_SKIP_UNLESS(HasLoopDevices(), "only root has loop devices, where there are any");
  Sandbox sandbox = MakeSandbox(Sized(Storage::kLoop));
  ExpectUsable(sandbox);
  ExpectHardLimit(sandbox);
}

TEST_F(LoopStorage, IsFullForLargeWritesWithAFewBlocksLeft) {
  PALMSHED_SKIP_UNLESS(HasLoopDevices(), "only root has loop devices, where there are any");
  Sandbox sandbox = MakeSandbox({.disk_quota = 8_MiB, .storage = Storage::kLoop});
  EXPECT_THAT(ExecShell(sandbox, "dd if=/dev/zero of=f bs=64k count=500"), EndedBy(Cause::kDisk));
  EXPECT_THAT(ExecShell(sandbox, "rm f; exit 3"), EndedBy(Cause::kExited)) << "there is room";
}

TEST_F(LoopStorage, DeviceIsOutOfReachInsideAndGoesWithTheSandbox) {
  PALMSHED_SKIP_UNLESS(HasLoopDevices(), "only root has loop devices, where there are any");
  Sandbox sandbox = MakeSandbox(Sized(Storage::kLoop));
  EXPECT_EQ(LoopDevicesOn(workspaces()), 1);
  EXPECT_THAT(ExecShell(sandbox, "ls -d /dev/loop* 2>/dev/null; echo none"),
              ExitedWith(0, "none\n"));
  Must(sandbox.Destroy());
  EXPECT_TRUE(Eventually([&] { return LoopDevicesOn(workspaces()) == 0; }));
}

TEST_F(LoopStorage, DeviceGoesWhenTheEngineIsKilled) {
  PALMSHED_SKIP_UNLESS(HasLoopDevices(), "only root has loop devices, where there are any");
  const TempDir root;
  ChildHost host([&](ChildHost& self) {
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine, Sized(Storage::kLoop));
    self.Tell("up");
    ChildHost::StayForEver();
  });
  ASSERT_EQ(host.Hear(), "up");
  EXPECT_EQ(LoopDevicesOn(root.path()), 1);
  host.Kill();
  EXPECT_TRUE(Eventually([&] { return LoopDevicesOn(root.path()) == 0; }));
}

TEST_F(DiskStorage, NeedsAViewAndASize) {
  SandboxOptions host_view = Sized(Storage::kMemory);
  host_view.os_filesystem_isolation = false;
  EXPECT_THAT(engine().CreateSandbox(host_view), FailsWith(ErrorCode::kUnsupported));
  EXPECT_THAT(engine().CreateSandbox({.storage = Storage::kMemory}),
              FailsWith(ErrorCode::kInvalidOptions));
}

}  // namespace
}  // namespace palmshed::tests
