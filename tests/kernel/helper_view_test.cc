// The tree that sandboxes see.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>

#include "support/helper_fixture.h"

namespace palmshed::testing {
namespace {

using child::LauncherAnswer;
using child::Step;

class HelperView : public ::testing::TestWithParam<HelperMode> {
 protected:
  void SetUp() override {
    if (const std::string why = WhySkip(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
  // Runs a command in a sandbox with that view.
  std::string Run(const ViewRecords& view, const std::string& command) {
    LauncherProcess launcher({.root = GetParam().root, .view = view});
    if (!IsReady(launcher)) return Explain(launcher);
    TestSandbox sandbox(&launcher, {});
    if (!sandbox.ok()) return sandbox.why_not();
    const Finished finished = sandbox.Shell(command);
    return finished.out + finished.err;
  }
  std::optional<child::LauncherReply> Answer(const ViewRecords& view) {
    return LauncherProcess({.root = GetParam().root, .view = view}).ready();
  }
};
INSTANTIATE_TEST_SUITE_P(Users, HelperView, ::testing::ValuesIn(kEveryUser), ModeName);

TEST_P(HelperView, ShowsWhatWasAskedForAndNothingElse) {
  EXPECT_EQ(Run(MinimalView(), "ls -A /"),
            "bin\ndev\netc\nlib\nlib64\nproc\nsbin\ntmp\nusr\nworkspace\n");
  EXPECT_EQ(Run(MinimalView(), "ls -A /etc; cat /etc/passwd"),
            "passwd\nsandbox:x:1000:1000::/workspace:/bin/sh\n");
}

TEST_P(HelperView, IsReadOnlyButForTheSandboxsOwn) {
  EXPECT_EQ(Run(MinimalView(),
                "for d in / /usr /etc /dev /workspace /tmp /dev/shm; do "
                "(: > $d/new) 2>/dev/null && echo $d; done"),
            "/workspace\n/tmp\n/dev/shm\n");
}

// C069: no set-user-ID program and no device but the listed ones.
TEST_P(HelperView, MarksEveryMount) {
  EXPECT_EQ(Run(MinimalView(), "grep -v nosuid /proc/self/mountinfo | wc -l"), "0\n");
  EXPECT_EQ(Run(MinimalView(), "grep -v nodev /proc/self/mountinfo | grep -v ' /dev/' | wc -l"),
            "0\n");
  EXPECT_EQ(Run(MinimalView(), "grep -c 'shared:\\|master:' /proc/self/mountinfo"), "0\n");
}

// Sources are found wherever they are: the view hides none of them while it is being built.
TEST_P(HelperView, BindsDirectoriesAndFilesFromAnywhere) {
  const TempDirectory source;
  std::ofstream(source.path() + "/file") << "content\n";
  ViewRecords view = MinimalView();
  view.Bind("/data/deep/directory", source.path()).Bind("/data/file", source.path() + "/file");
  EXPECT_EQ(Run(view,
                "cat /data/deep/directory/file /data/file; (: > /data/deep/directory/new) "
                "2>/dev/null || echo read-only"),
            "content\ncontent\nread-only\n");
  struct stat status{};
  EXPECT_NE(::stat((source.path() + "/new").c_str(), &status), 0);
}

TEST_P(HelperView, FollowsLinksInsideTheViewOnly) {
  const TempDirectory source;
  std::ofstream(source.path() + "/file") << "content\n";
  ViewRecords view = MinimalView();
  view.Directory("/real").Symlink("/link", "/real").Bind("/link/data", source.path());
  view.File("/link/text", "text\n", 0444).Directory("/sticky", 01777);
  EXPECT_EQ(Run(view, "cat /real/data/file /real/text; stat -c %a /real/text /sticky"),
            "content\ntext\n444\n1777\n");
}

TEST_P(HelperView, SkipsOptionalSourcesOnly) {
  ViewRecords view = MinimalView();
  view.Bind("/data", "/no/such/source", child::kViewOptional);
  EXPECT_EQ(Run(view, "ls -d /data 2>/dev/null; echo done"), "done\n");
  const auto answer = Answer(ViewRecords().Directory("/a").Bind("/data", "/no/such/source"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->answer, LauncherAnswer::kFailed);
  EXPECT_EQ(answer->step, Step::kViewEntry);
  EXPECT_EQ(answer->sys_errno, ENOENT);
  EXPECT_EQ(answer->detail, 1U);
}

TEST_P(HelperView, RefusesRelativePaths) {
  const auto answer = Answer(ViewRecords().Directory("relative"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->step, Step::kViewEntry);
  EXPECT_EQ(answer->sys_errno, EINVAL);
}

// Where no /proc can be mounted, identities are written through the host's.
TEST_P(HelperView, DoesWithoutProc) {
  ViewRecords view;
  view.Bind("/usr", "/usr", child::kViewRecursive).Symlink("/bin", "usr/bin");
  view.Symlink("/lib", "usr/lib").Symlink("/lib64", "usr/lib64").Directory("/proc");
  view.Bind("/dev", "/dev", child::kViewRecursive | child::kViewDevice | child::kViewWritable);
  view.Directory("/tmp").Directory("/workspace");
  LauncherProcess launcher({.root = GetParam().root, .view = view});
  ASSERT_TRUE(IsReady(launcher)) << Explain(launcher);
  TestSandbox sandbox(&launcher, {.flags = UsualInitFlags() | child::kInitNoProc});
  ASSERT_TRUE(sandbox.ok()) << sandbox.why_not();
  EXPECT_EQ(sandbox.Shell("id -u; ls -A /proc").out, "1000\n");
  TestSandbox refused(&launcher, {});
  ASSERT_TRUE(refused.ready()) << refused.why_not();
  EXPECT_EQ(refused.ready()->step, Step::kMountProc);
}

// A tree that is bound on "/" is the root from then on; entries after it are made in it.
TEST_P(HelperView, TakesAnotherTreeAsItsRoot) {
  const TempDirectory root;
  std::ofstream(root.path() + "/marker") << "content\n";
  for (const char* name : {"usr", "proc", "dev", "tmp", "workspace"}) {
    std::filesystem::create_directory(root.path() + "/" + name);
  }
  for (const char* name : {"bin", "lib", "lib64"}) {
    std::filesystem::create_symlink(std::string("usr/") + name, root.path() + "/" + name);
  }
  ViewRecords view;
  view.Bind("/", root.path()).Bind("/usr", "/usr", child::kViewRecursive).Proc("/proc");
  view.Bind("/dev", "/dev", child::kViewRecursive | child::kViewDevice | child::kViewWritable);
  EXPECT_EQ(Run(view, "cat /marker; (: > /new) 2>/dev/null || echo read-only"),
            "content\nread-only\n");
}

}  // namespace
}  // namespace palmshed::testing
