// Files through the API while the program inside sets traps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/eventually.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Files : public KernelTest {};

constexpr char kTraps[] =
    "ln -s /etc/passwd l; ln -s / d; ln -s ../../.. up; ln -s l2 l1; ln -s l1 l2; "
    "mkdir ok; echo inside > ok/x; ln -s ok in; ln -s /workspace/ok absolute";

// C015
TEST_F(Files, PlantedLinksLeadNowhere) {
  const TempDir host(0777);
  Sandbox sandbox = MakeSandbox();
  ASSERT_EQ(ExecShell(sandbox, std::string(kTraps) + "; ln -s " + host.path() + "/new dangling")
                .exit_code,
            0);
  for (const char* path : {"l", "d/etc/passwd", "up/etc/hostname", "l1", "absolute/x"}) {
    EXPECT_THAT(sandbox.ReadFile(path), FailsWith(ErrorCode::kFsError)) << path;
    EXPECT_THAT(sandbox.DownloadFile(path, host.path() + "/down"), FailsWith(ErrorCode::kFsError));
  }
  // The control.
  EXPECT_EQ(Must(sandbox.ReadFile("in/x")), "inside\n");
  EXPECT_EQ(Must(sandbox.ReadFile("ok/x")), "inside\n");
}

// C015
TEST_F(Files, NothingIsWrittenThroughPlantedLinks) {
  const TempDir host(0777);
  const std::string victim = host.AddFile("victim", "untouched");
  Sandbox sandbox = MakeSandbox();
  ASSERT_EQ(ExecShell(sandbox, std::string(kTraps) + "; ln -s " + host.path() + "/new dangling; " +
                                   "ln -s " + host.path() + " out; ln -s " + victim + " v")
                .exit_code,
            0);
  // Should one of them work after all, it hits the directory of this test.
  const std::string name = std::filesystem::path(host.path()).filename();
  for (const std::string& path : {"d" + host.path() + "/pwn", std::string("out/pwn"),
                                  "up/" + name + "/pwn", std::string("../pwn")}) {
    EXPECT_THAT(sandbox.WriteFile(path, "x"), FailsWith(ErrorCode::kFsError)) << path;
    EXPECT_THAT(sandbox.UploadFile(victim, path), FailsWith(ErrorCode::kFsError)) << path;
    EXPECT_THAT(sandbox.MakeDirectory(path), FailsWith(ErrorCode::kFsError)) << path;
  }
  EXPECT_THAT(sandbox.List("d"), FailsWith(ErrorCode::kFsError));
  EXPECT_THAT(sandbox.Remove("out/victim"), FailsWith(ErrorCode::kFsError));
  // A file put in the place of a link replaces the link, or is refused; it never follows it.
  (void)sandbox.WriteFile("dangling", "x");
  (void)sandbox.WriteFile("v", "x");
  EXPECT_EQ(TreeOf(host.path()), std::vector<std::string>{"victim"});
  EXPECT_EQ(Slurp(victim), "untouched");
}

// C015
TEST_F(Files, LinkItselfCanBeSeenAndRemoved) {
  const TempDir host(0755);
  const std::string victim = host.AddFile("victim", "untouched");
  Sandbox sandbox = MakeSandbox();
  ASSERT_EQ(ExecShell(sandbox, "ln -s " + victim + " l; ln -s " + host.path() + " d").exit_code, 0);
  EXPECT_EQ(Must(sandbox.Stat("l")).type, FileType::kSymlink);
  Must(sandbox.Remove("l"));
  Must(sandbox.Remove("d", true));
  EXPECT_EQ(Slurp(victim), "untouched");
  EXPECT_THAT(sandbox.Stat("l"), Not(Succeeds()));
}

// C015: the program inside swaps a directory for a link while the API walks.
TEST_F(Files, RacingLinksNeverWin) {
  const TempDir host(0755);
  host.AddFile("x", "outside");
  Sandbox sandbox = MakeSandbox();
  ASSERT_EQ(ExecShell(sandbox, "mkdir real; echo inside > real/x; ln -s " + host.path() + " evil")
                .exit_code,
            0);
  Execution swapping = Must(sandbox.Start({"./probe", "exchange", "real", "evil"}));
  ASSERT_TRUE(AwaitOutput(swapping, "ready"));
  int inside = 0, refused = 0;
  const auto read_once = [&] {
    const auto content = sandbox.ReadFile("real/x");
    EXPECT_EQ(content.value_or("inside\n"), "inside\n");
    ++(content ? inside : refused);
    return HasFailure() || (inside >= 200 && refused >= 200);
  };
  EXPECT_TRUE(Eventually(read_once)) << inside << " inside, " << refused << " refused";
  Must(swapping.Cancel());
  EXPECT_EQ(Must(swapping.Wait()).status, Status::kCancelled);
}

TEST_F(Files, SpecialFilesAreRefusedAtOnce) {
  Sandbox sandbox = MakeSandbox();
  ASSERT_EQ(ExecShell(sandbox, "mkfifo fifo").exit_code, 0);
  EXPECT_THAT(sandbox.ReadFile("fifo"), FailsWith(ErrorCode::kFsError));
  EXPECT_THAT(sandbox.ReadFile("."), FailsWith(ErrorCode::kFsError));
  EXPECT_EQ(Must(sandbox.Stat("fifo")).type, FileType::kOther);
}

// C076
TEST_F(Files, WrittenProgramRunsAtOnce) {
  constexpr int kThreads = 8, kRounds = 25;
  Sandbox shared = MakeSandbox();
  std::atomic<int> ok = 0;
  const auto rounds = [&](Sandbox& sandbox, int thread) {
    for (int round = 0; round < kRounds; ++round) {
      const std::string name = "run_" + std::to_string(thread) + "_" + std::to_string(round);
      Must(sandbox.WriteFile(name, "#!/bin/sh\necho ok\n", 0755));
      const ExecResult run = Exec(sandbox, {"./" + name});
      EXPECT_THAT(run, ExitedWith(0, "ok\n"));
      if (run.ok()) ++ok;
    }
  };
  std::vector<Sandbox> own;
  for (int i = 0; i < kThreads / 2; ++i) own.push_back(MakeSandbox());
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      Sandbox& sandbox = i % 2 == 0 ? shared : own[static_cast<std::size_t>(i / 2)];
      threads.emplace_back([&rounds, &sandbox, i] { rounds(sandbox, i); });
    }
  }
  EXPECT_EQ(ok, kThreads * kRounds);
}

// C076: a program file itself, not a script.
TEST_F(Files, WrittenBinaryRunsAtOnce) {
  Sandbox sandbox = MakeSandbox();
  for (int i = 0; i < 50; ++i) {
    AddProbe(sandbox, "binary");
    ASSERT_EQ(Exec(sandbox, {"./binary", "descriptors"}).exit_code, 0) << i;
  }
}

// C086
TEST_F(Files, RenameAndLinkWorkAcrossDirectories) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(ExecShell(sandbox,
                        "mkdir a b c; echo 1 > a/f; mv a/f b/f && ln b/f a/g && "
                        "mv b/f c/f && cat c/f a/g"),
              ExitedWith(0, "1\n1\n"));
  EXPECT_EQ(Exec(sandbox, {"./probe", "rename", "a/g", "b/h"}).exit_code, kReached);
  EXPECT_THAT(ExecShell(sandbox, "mv /workspace/b/h /tmp/h && mv /tmp/h . && cat h"),
              ExitedWith(0, "1\n"));
  EXPECT_EQ(Exec(sandbox, {"./probe", "link", "/etc/passwd", "p"}).exit_code, kRefused);
}

// C086: packs are linked and renamed into their place, and what they hold is removed elsewhere.
TEST_F(Files, GitCollectsGarbage) {
  PALMSHED_SKIP_UNLESS(OnPath("git"), "no git on this host");
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(
      ExecShell(sandbox,
                "git init -q r && cd r && git config user.name a && "
                "git config user.email a@b.test && "
                "for i in 1 2 3; do echo $i > f; git add f; git commit -qm $i; done && "
                "git branch -q old HEAD~1 && git gc -q --prune=now && "
                "git fsck --no-progress && git count-objects -v | grep -E '^(count|packs):'"),
      ExitedWith(0, "count: 0\npacks: 1\n"));
}

// C085
TEST_F(Files, GitWorksInAnUploadedRepository) {
  PALMSHED_SKIP_UNLESS(OnPath("git"), "no git on this host");
  const TempDir host;
  const std::string git = "git -C " + host.path() + "/r -c user.name=a -c user.email=a@b.test ";
  ASSERT_EQ(RunOnHost({"sh", "-c",
                       "mkdir " + host.path() + "/r && " + git + "init -q && echo x > " +
                           host.path() + "/r/f && " + git + "add f && " + git + "commit -qm one"},
                      As::kSelf)
                .exit_code,
            0);
  Sandbox sandbox = MakeSandbox();
  Must(sandbox.UploadFile(host.path() + "/r", "r"));
  const ExecResult run = ExecShell(
      sandbox,
      "git status --short && git log -1 --format=%s && git config --global user.name x && "
      "git -c user.email=x@y.test commit -q --allow-empty -m two && git log --format=%s",
      {.work_dir = "r"});
  EXPECT_THAT(run, ExitedWith(0, "one\ntwo\none\n"));
  EXPECT_THAT(Must(sandbox.ReadFile("r/.git/COMMIT_EDITMSG")), HasSubstr("two"));
}

TEST_F(Files, ApiAndProgramSeeTheSameFiles) {
  Sandbox sandbox = MakeSandbox();
  Must(sandbox.WriteFile("dir/from-api", "one"));
  EXPECT_THAT(ExecShell(sandbox,
                        "cat dir/from-api; stat -c '%u %a' dir/from-api; "
                        "echo two > dir/from-program; rm dir/from-api"),
              ExitedWith(0, "one1000 644\n"));
  EXPECT_EQ(Must(sandbox.ReadFile("dir/from-program")), "two\n");
  EXPECT_THAT(sandbox.ReadFile("dir/from-api"), Not(Succeeds()));
  Must(sandbox.Remove("dir", true));
  EXPECT_THAT(ExecShell(sandbox, "ls -d dir"), Not(ExitedWith(0, "dir\n")));
}

// Modes that shut out their owner must not keep the API or the collector out.
TEST_F(Files, ClosedDirectoriesCanBeRemoved) {
  Sandbox sandbox = MakeSandbox();
  ASSERT_EQ(ExecShell(sandbox, "mkdir -p a/b; echo x > a/b/f; chmod 0 a/b/f a/b a").exit_code, 0);
  Must(sandbox.Destroy());
  EXPECT_TRUE(std::filesystem::is_empty(workspaces()));
}

}  // namespace
}  // namespace palmshed::tests
