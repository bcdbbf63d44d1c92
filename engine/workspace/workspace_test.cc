#include "workspace/workspace.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/files.h"
#include "palmshed/units.h"
#include "workspace/resolve.h"
#include "workspace/test_tree.h"

namespace palmshed::workspace {
namespace {

using namespace std::string_view_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint32_t kSomeUid = 54321;

class WorkspaceTest : public ::testing::Test {
 protected:
  TestTree tree_;
  Workspace workspace_{tree_.Open()};
};

TEST_F(WorkspaceTest, ReadsBackEveryByte) {  // C011
  std::string all;
  for (int i = 0; i < 4096 * 256; ++i) all += static_cast<char>(i & 0xff);
  ASSERT_TRUE(workspace_.WriteFile("all.bin", AsBytes(all), 0644));
  EXPECT_EQ(workspace_.ReadFile("all.bin"), all);
  EXPECT_EQ(tree_.Read("all.bin"), all);
}

TEST_F(WorkspaceTest, ReadsAnEmptyFile) {
  ASSERT_TRUE(workspace_.WriteFile("empty", {}, 0644));
  EXPECT_EQ(workspace_.ReadFile("empty"), "");
}

TEST_F(WorkspaceTest, MissingFileIsNotFound) {
  const auto content = workspace_.ReadFile("nothing");
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(content.error().message, "nothing does not exist");
}

TEST_F(WorkspaceTest, RefusesToReadMoreThanItsLimit) {
  const UniqueFd fd(::open(tree_.At("sparse").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_EQ(::ftruncate(fd.get(), static_cast<off_t>(Count(kMaxReadFile) + 1)), 0);
  const auto content = workspace_.ReadFile("sparse");
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, ErrorCode::kFsError);
}

TEST_F(WorkspaceTest, WriteMakesParentsAndSetsTheMode) {
  const mode_t old = ::umask(0077);
  const auto written = workspace_.WriteFile("a/b/run.sh", AsBytes("#!/bin/sh\n"), 0755);
  ::umask(old);
  ASSERT_TRUE(written);
  EXPECT_EQ(tree_.Mode("a/b/run.sh"), 0755U);
  EXPECT_EQ(tree_.Mode("a"), 0755U);
  EXPECT_EQ(tree_.Mode("a/b"), 0755U);
}

TEST_F(WorkspaceTest, WriteReplacesAndLeavesNothingElse) {
  ASSERT_TRUE(workspace_.WriteFile("f", AsBytes("old"), 0600));
  ASSERT_TRUE(workspace_.WriteFile("f", AsBytes("new"), 0640));
  EXPECT_EQ(tree_.Read("f"), "new");
  EXPECT_EQ(tree_.Mode("f"), 0640U);
  EXPECT_THAT(tree_.Names(), ElementsAre("f"));
}

TEST_F(WorkspaceTest, WriteKeepsTheOldFileOpenElsewhere) {
  tree_.Write("f", "old");
  const UniqueFd reader(::open(tree_.At("f").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(workspace_.WriteFile("f", AsBytes("new"), 0644));
  char seen[8] = {};
  ASSERT_EQ(::read(reader.get(), seen, sizeof seen), 3);
  EXPECT_EQ(std::string_view(seen, 3), "old");
}

TEST_F(WorkspaceTest, FailedWriteLeavesNoTrace) {
  tree_.Mkdir("d");
  const auto written = workspace_.WriteFile("d", AsBytes("x"), 0644);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, "d is a directory");
  EXPECT_THAT(tree_.Names(), ElementsAre("d"));
  EXPECT_THAT(tree_.Names("d"), IsEmpty());
}

TEST_F(WorkspaceTest, ReadersSeeTheOldContentOrTheNew) {
  const std::string a(100'000, 'a');
  const std::string b(100'000, 'b');
  ASSERT_TRUE(workspace_.WriteFile("f", AsBytes(a), 0644));
  std::atomic<bool> stop = false;
  const std::jthread writer([&] {
    for (int i = 0; i < 300; ++i) {
      EXPECT_TRUE(workspace_.WriteFile("f", AsBytes(i % 2 == 0 ? b : a), 0644));
    }
    stop = true;
  });
  while (!stop) {
    const auto content = workspace_.ReadFile("f");
    ASSERT_TRUE(content);
    EXPECT_TRUE(*content == a || *content == b);
  }
}

TEST_F(WorkspaceTest, WrittenProgramRunsAtOnce) {  // C076
  for (int i = 0; i < 20; ++i) {
    const std::string name = "run_" + std::to_string(i);
    ASSERT_TRUE(workspace_.WriteFile(name, AsBytes("#!/bin/sh\nexit 7\n"), 0755));
    const std::string path = tree_.At(name);
    std::array<char*, 2> argv{const_cast<char*>(path.c_str()), nullptr};
    pid_t pid = 0;
    ASSERT_EQ(::posix_spawn(&pid, path.c_str(), nullptr, nullptr, argv.data(), nullptr), 0) << name;
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(WEXITSTATUS(status), 7) << name;  // NOLINT(misc-include-cleaner): <sys/wait.h>
  }
}

TEST_F(WorkspaceTest, SpecialModeBitsAreRefused) {
  tree_.Write("f", "x", 0600);
  for (const std::uint32_t mode : {04755U, 02755U, 01777U, 010644U}) {
    EXPECT_EQ(workspace_.Chmod("f", mode).error().field, "mode");
    EXPECT_EQ(workspace_.WriteFile("g", {}, mode).error().field, "mode");
    EXPECT_EQ(workspace_.MakeDirectory("h", mode).error().field, "mode");
  }
  EXPECT_THAT(tree_.Names(), ElementsAre("f"));
  EXPECT_TRUE(workspace_.Chmod("f", 0755));
  EXPECT_EQ(tree_.Mode("f"), 0755U);
}

TEST_F(WorkspaceTest, ChmodWorksOnWhatCannotBeOpened) {
  tree_.Write("f", "x", 0);
  tree_.Mkdir("d", 0);
  EXPECT_TRUE(workspace_.Chmod("f", 0600));
  EXPECT_TRUE(workspace_.Chmod("d", 0700));
  EXPECT_EQ(tree_.Mode("f"), 0600U);
  EXPECT_EQ(tree_.Mode("d"), 0700U);
}

TEST_F(WorkspaceTest, ListIsSortedBytewiseAndKnowsTypes) {
  tree_.Write("b", "12345");
  tree_.Mkdir("B");
  tree_.Link("b", "\xff");
  tree_.Fifo("a");
  const auto entries = workspace_.List("");
  ASSERT_TRUE(entries);
  ASSERT_EQ(entries->size(), 4U);
  EXPECT_EQ((*entries)[0].name, "B");
  EXPECT_EQ((*entries)[0].stat.type, FileType::kDirectory);
  EXPECT_EQ((*entries)[1].name, "a");
  EXPECT_EQ((*entries)[1].stat.type, FileType::kOther);
  EXPECT_EQ((*entries)[2].name, "b");
  EXPECT_EQ(Count((*entries)[2].stat.size), 5U);
  EXPECT_EQ((*entries)[3].name, "\xff");
  EXPECT_EQ((*entries)[3].stat.type, FileType::kSymlink);
}

TEST_F(WorkspaceTest, StatTellsFacts) {
  tree_.Write("f", "123", 0640);
  const auto stat = workspace_.Stat("f");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->type, FileType::kFile);
  EXPECT_EQ(Count(stat->size), 3U);
  EXPECT_EQ(stat->mode, 0640U);
  EXPECT_EQ(std::chrono::system_clock::to_time_t(stat->modified), tree_.Lstat("f").st_mtime);
  EXPECT_EQ(workspace_.Stat("")->type, FileType::kDirectory);
  EXPECT_EQ(workspace_.Stat(".")->type, FileType::kDirectory);
  EXPECT_EQ(workspace_.Stat("f/").error().sys_errno, ENOTDIR);
}

TEST_F(WorkspaceTest, MakeDirectoryIsIdempotent) {
  ASSERT_TRUE(workspace_.MakeDirectory("a/b/c", 0700));
  EXPECT_EQ(tree_.Mode("a/b/c"), 0700U);
  EXPECT_EQ(tree_.Mode("a/b"), 0755U);
  EXPECT_TRUE(workspace_.MakeDirectory("a/b/c", 0755));
  EXPECT_EQ(tree_.Mode("a/b/c"), 0700U);
  tree_.Write("f", "");
  EXPECT_EQ(workspace_.MakeDirectory("f", 0755).error().code, ErrorCode::kFsError);
  EXPECT_EQ(workspace_.MakeDirectory("f/x", 0755).error().code, ErrorCode::kFsError);
  EXPECT_TRUE(workspace_.MakeDirectory("x/../y", 0755)) << "x is made on the way, as with mkdir -p";
}

TEST_F(WorkspaceTest, ParallelMakersOfOneTreeAllSucceed) {
  std::vector<std::thread> makers;
  makers.reserve(4);
  std::atomic<int> failures = 0;
  for (int i = 0; i < 4; ++i) {
    makers.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round) {
        const std::string path = "r" + std::to_string(round) + "/a/b/f" + std::to_string(i);
        if (!workspace_.WriteFile(path, AsBytes("x"), 0644)) ++failures;
      }
    });
  }
  for (std::thread& maker : makers) maker.join();
  EXPECT_EQ(failures, 0);
  for (int round = 0; round < 50; ++round) {
    EXPECT_EQ(tree_.Names("r" + std::to_string(round) + "/a/b").size(), 4U);
  }
  EXPECT_EQ(tree_.Names().size(), 50U) << "temporary names are gone";
}

TEST_F(WorkspaceTest, RemoveNeedsRecursiveForAFullDirectory) {
  ASSERT_TRUE(workspace_.WriteFile("d/e/f", AsBytes("x"), 0644));
  const auto removed = workspace_.Remove("d", false);
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().sys_errno, ENOTEMPTY);
  EXPECT_TRUE(tree_.Has("d/e/f"));
  EXPECT_TRUE(workspace_.Remove("d", true));
  EXPECT_FALSE(tree_.Has("d"));
  EXPECT_EQ(workspace_.Remove("d", true).error().code, ErrorCode::kNotFound);
}

TEST_F(WorkspaceTest, TheWorkspaceItselfStays) {
  tree_.Mkdir("a");
  for (const std::string_view path : {""sv, "."sv, "a/.."sv}) {
    EXPECT_EQ(workspace_.Remove(path, true).error().code, ErrorCode::kFsError) << path;
    EXPECT_EQ(workspace_.Move(path, "b").error().code, ErrorCode::kFsError) << path;
    EXPECT_EQ(workspace_.WriteFile(path, {}, 0644).error().code, ErrorCode::kFsError) << path;
  }
  EXPECT_THAT(tree_.Names(), ElementsAre("a"));
}

TEST_F(WorkspaceTest, MoveReplacesAFileOnly) {
  tree_.Write("a", "a");
  tree_.Write("b", "b");
  ASSERT_TRUE(workspace_.Move("a", "b"));
  EXPECT_EQ(tree_.Read("b"), "a");
  EXPECT_FALSE(tree_.Has("a"));
  tree_.Mkdir("d");
  EXPECT_FALSE(workspace_.Move("b", "d"));
  EXPECT_TRUE(workspace_.Move("b", "d/b"));
  EXPECT_EQ(workspace_.Move("d", "d/d").error().message, "d cannot be moved into itself");
  EXPECT_EQ(workspace_.Move("nothing", "x").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(workspace_.Move("d", "no/such/place").error().code, ErrorCode::kNotFound);
}

TEST_F(WorkspaceTest, SpecialFilesAreRefusedWithoutWaiting) {
  tree_.Fifo("fifo");
  const UniqueFd watcher(::open(tree_.At("fifo").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  EXPECT_EQ(workspace_.ReadFile("fifo").error().message, "fifo is not a regular file");
  EXPECT_EQ(workspace_.WriteFile("fifo", {}, 0644).error().message, "fifo is not a regular file");
  EXPECT_EQ(workspace_.DownloadFile("fifo", tree_.At("copy")).error().code, ErrorCode::kFsError);
  EXPECT_EQ(workspace_.List("fifo").error().sys_errno, ENOTDIR);
  EXPECT_EQ(workspace_.Chmod("fifo", 0600).error().code, ErrorCode::kFsError);
  EXPECT_TRUE(S_ISFIFO(tree_.Lstat("fifo").st_mode));
}

TEST_F(WorkspaceTest, ALeaseDoesNotHoldAReaderUp) {
  tree_.Write("leased", "x");
  const UniqueFd holder(::open(tree_.At("leased").c_str(), O_RDWR | O_CLOEXEC));
  ::signal(SIGIO, SIG_IGN);
  ASSERT_EQ(::fcntl(holder.get(), F_SETLEASE, F_WRLCK), 0);
  EXPECT_EQ(workspace_.ReadFile("leased").error().code, ErrorCode::kOverloaded);
  ASSERT_EQ(::fcntl(holder.get(), F_SETLEASE, F_UNLCK), 0);
  EXPECT_EQ(workspace_.ReadFile("leased"), "x");
}

TEST_F(WorkspaceTest, WorkDirectoryIsMadeWithItsParents) {
  const auto fd = workspace_.OpenDirectoryMakingParents("w/x");
  ASSERT_TRUE(fd);
  EXPECT_TRUE(S_ISDIR(tree_.Lstat("w/x").st_mode));
  EXPECT_TRUE(workspace_.OpenDirectoryMakingParents(""));
  tree_.Write("f", "");
  EXPECT_EQ(workspace_.OpenDirectoryMakingParents("f").error().code, ErrorCode::kFsError);
}

TEST_F(WorkspaceTest, WhatItMakesBelongsToTheSandbox) {
  if (::geteuid() != 0) GTEST_SKIP() << "geteuid() is not 0: only root gives files away";
  const Workspace owned(tree_.Open(), kSomeUid);
  TestTree host;
  host.Mkdir("up");
  host.Write("up/f", "x");
  host.Link("f", "up/l");
  ASSERT_TRUE(owned.WriteFile("a/b/f", AsBytes("x"), 0644));
  ASSERT_TRUE(owned.MakeDirectory("d/e", 0755));
  ASSERT_TRUE(owned.UploadFile(host.At("up"), "up"));
  ASSERT_TRUE(owned.UploadFile(host.At("up/f"), "single"));
  for (const auto name : {"a", "a/b", "a/b/f", "d", "d/e", "up", "up/f", "up/l", "single"}) {
    EXPECT_EQ(tree_.Lstat(name).st_uid, kSomeUid) << name;
    EXPECT_EQ(tree_.Lstat(name).st_gid, kSomeUid) << name;
  }
}

}  // namespace
}  // namespace palmshed::workspace
