#include "backends/native/state_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "palmshed/error.h"
#include "workspace/test_tree.h"

namespace palmshed::backends::native {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using workspace::AsOrdinaryUser;
using workspace::TestTree;

class HostDirectoriesTest : public ::testing::Test {
 protected:
  /// An ordinary user's environment; the paths are ours to make, whoever runs the test.
  HostEnvironment User() const {
    return {.uid = ::geteuid(),
            .run = "/nonexistent",
            .lib = "/nonexistent",
            .runtime_home = tree_.At("runtime"),
            .state_home = tree_.At("home/state"),
            .temporary = tree_.At("tmp")};
  }
  void MakeHome() const {
    tree_.Mkdir("runtime", 0700);
    tree_.Mkdir("home", 0755);
    tree_.Mkdir("tmp", 01777);
    tree_.Mkdir("run", 0755);
    tree_.Mkdir("lib", 0755);
  }

  TestTree tree_;
};

TEST_F(HostDirectoriesTest, RootHasItsOwn) {
  if (::geteuid() != 0) GTEST_SKIP() << "geteuid() is not 0";
  MakeHome();
  HostEnvironment host = User();
  host.run = tree_.At("run");
  host.lib = tree_.At("lib");
  const auto opened = OpenHostDirectories(host, "");
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->state.path, tree_.At("run/palmshed"));
  EXPECT_EQ(opened->workspaces.path, tree_.At("lib/palmshed"));
  EXPECT_EQ(StatePath(host), opened->state.path);
  EXPECT_EQ(WorkspacesPath(host, ""), opened->workspaces.path);
  EXPECT_EQ(tree_.Mode("run/palmshed"), 0700U);
  EXPECT_EQ(tree_.Mode("lib/palmshed"), 0700U);
}

TEST_F(HostDirectoriesTest, AUserHasXdgDirectories) {
  const AsOrdinaryUser user(tree_);
  MakeHome();
  EXPECT_FALSE(tree_.Has("runtime/palmshed")) << StatePath(User());
  const auto opened = OpenHostDirectories(User(), "");
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->state.path, tree_.At("runtime/palmshed"));
  EXPECT_EQ(opened->workspaces.path, tree_.At("home/state/palmshed"));
  EXPECT_EQ(StatePath(User()), opened->state.path);
  EXPECT_EQ(WorkspacesPath(User(), ""), opened->workspaces.path);
  EXPECT_EQ(WorkspacesPath(User(), "/chosen"), "/chosen");
  EXPECT_EQ(tree_.Mode("home/state"), 0700U) << "every parent that is made";
  EXPECT_EQ(tree_.Mode("home"), 0755U) << "one that was there stays as it is";
}

TEST_F(HostDirectoriesTest, WithoutThemAPrivateTemporaryDirectory) {
  const AsOrdinaryUser user(tree_);
  MakeHome();
  HostEnvironment host = User();
  host.state_home.clear();
  for (const std::string& runtime :
       {std::string(), std::string("relative"), tree_.At("missing"), std::string("/usr")}) {
    host.runtime_home = runtime;
    const auto opened = OpenHostDirectories(host, "");
    ASSERT_TRUE(opened) << opened.error().message;
    const std::string own = tree_.At("tmp/palmshed-" + std::to_string(host.uid));
    EXPECT_EQ(opened->state.path, own) << runtime;
    EXPECT_EQ(opened->workspaces.path, own + "/workspaces");
    EXPECT_EQ(StatePath(host), opened->state.path);
    EXPECT_EQ(WorkspacesPath(host, ""), opened->workspaces.path);
    struct stat st{};
    ASSERT_EQ(::stat(own.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0700U);
  }
}

TEST_F(HostDirectoriesTest, APlantedTemporaryDirectoryIsRefused) {
  const AsOrdinaryUser user(tree_);
  MakeHome();
  HostEnvironment host = User();
  host.runtime_home.clear();
  const std::string name = "tmp/palmshed-" + std::to_string(host.uid);
  tree_.Mkdir("elsewhere", 0700);
  tree_.Link(tree_.At("elsewhere"), name);
  EXPECT_EQ(OpenHostDirectories(host, "").error().code, ErrorCode::kFsError) << "a link";
  ASSERT_EQ(::unlink(tree_.At(name).c_str()), 0);
  tree_.Write(name, "");
  EXPECT_EQ(OpenHostDirectories(host, "").error().code, ErrorCode::kFsError) << "a file";
  ASSERT_EQ(::unlink(tree_.At(name).c_str()), 0);
  tree_.Mkdir(name, 0777);
  const auto opened = OpenHostDirectories(host, "");
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("other users may write"));
  EXPECT_THAT(opened.error().remedy, HasSubstr(name));
  ASSERT_EQ(::chmod(tree_.At(name).c_str(), 0755), 0);
  EXPECT_TRUE(OpenHostDirectories(host, "")) << "control";
  EXPECT_EQ(tree_.Mode(name), 0700U) << "made private";
}

TEST_F(HostDirectoriesTest, ForeignDirectoriesAreRefused) {
  MakeHome();
  HostEnvironment host = User();
  host.uid = ::geteuid() + 1;
  host.runtime_home.clear();
  const auto opened = OpenHostDirectories(host, "");
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("belongs to another user"));
}

TEST_F(HostDirectoriesTest, TheCallersChoiceOfRootWins) {
  MakeHome();
  HostEnvironment host = User();
  host.run = tree_.At("run");
  tree_.Mkdir("chosen", 0755);
  const auto opened = OpenHostDirectories(host, tree_.At("chosen"));
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->workspaces.path, tree_.At("chosen"));
  EXPECT_EQ(tree_.Mode("chosen"), 0755U);
  EXPECT_TRUE(OpenHostDirectories(host, tree_.At("made/on/the/way")));
  EXPECT_EQ(tree_.Mode("made/on"), 0700U);
  EXPECT_EQ(OpenHostDirectories(host, "relative").error().field, "workspaceRoot");
  tree_.Mkdir("open", 0777);
  EXPECT_EQ(OpenHostDirectories(host, tree_.At("open")).error().code, ErrorCode::kFsError);
}

class PrivatePathsTest : public HostDirectoriesTest {
 protected:
  void MakePlaces() const {
    MakeHome();
    tree_.Mkdir("chosen", 0700);
  }
  std::string Real(const std::string& name) const {
    return std::filesystem::canonical(tree_.path()) / name;
  }
  std::vector<std::string> Private(const HostEnvironment& host) const {
    return Private(host, tree_.At("chosen"));
  }
  std::vector<std::string> Private(const HostEnvironment& host, const std::string& root) const {
    const auto directories = OpenHostDirectories(host, root);
    EXPECT_TRUE(directories) << directories.error().message;
    if (!directories) return {};
    const auto paths = PrivatePaths(host, *directories);
    EXPECT_TRUE(paths) << paths.error().message;
    return paths ? *paths : std::vector<std::string>();
  }
  static std::string Temporary(const HostEnvironment& host) {
    return "palmshed-" + std::to_string(host.uid);
  }
};

TEST_F(PrivatePathsTest, AreTheKernelsHoweverTheyAreSpelled) {
  const AsOrdinaryUser user(tree_);
  MakePlaces();
  tree_.Link("chosen", "link");
  tree_.Link("runtime", "runtime-link");
  HostEnvironment host = User();
  host.runtime_home = tree_.At("./runtime-link//");
  for (const std::string root : {"chosen", "chosen/", "link", "tmp/..//./link/.", "link//"}) {
    const std::vector<std::string> paths = Private(host, tree_.At(root));
    EXPECT_THAT(paths, Contains(Real("chosen"))) << root;
    EXPECT_THAT(paths, Contains(Real("runtime/palmshed"))) << root;
  }
}

TEST_F(PrivatePathsTest, AreThoseOfOtherEnginesToo) {
  const AsOrdinaryUser user(tree_);
  MakePlaces();
  HostEnvironment host = User();
  host.run = tree_.At("run");
  host.lib = tree_.At("lib");
  EXPECT_FALSE(tree_.Has("home/state")) << "what is not there yet is known by its parents";
  EXPECT_THAT(Private(host),
              IsSupersetOf({Real("chosen"), Real("runtime/palmshed"), Real("run/palmshed"),
                            Real("lib/palmshed"), Real("home/state/palmshed"),
                            Real("tmp/" + Temporary(host)),
                            (std::filesystem::canonical("/tmp") / Temporary(host)).string()}));
  tree_.Link("home", "home-link");
  host.state_home = tree_.At("home-link//missing/../state/");
  EXPECT_THAT(Private(host), Contains(Real("home/state/palmshed")));
  tree_.Mkdir("home/state", 0700);
  tree_.Link(tree_.At("run"), "home/state/palmshed");
  host.state_home = tree_.At("home/state");
  EXPECT_THAT(Private(host), Contains(Real("run"))) << "where this user has it lead";
}

TEST_F(PrivatePathsTest, ALinkThatAnybodyMayPlantLeadsNowhere) {
  const AsOrdinaryUser user(tree_);
  MakePlaces();
  const HostEnvironment host = User();
  tree_.Link(tree_.At("home"), "tmp/" + Temporary(host));
  const std::vector<std::string> paths = Private(host);
  EXPECT_THAT(paths, Not(Contains(Real("home"))));
  EXPECT_THAT(paths, Contains(Real("tmp/" + Temporary(host))));
}

TEST_F(PrivatePathsTest, RootsAreRootsAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "geteuid() is not 0";
  MakePlaces();
  HostEnvironment host = User();
  host.run = tree_.At("run");
  host.lib = tree_.At("lib");
  const std::vector<std::string> paths = Private(host);
  EXPECT_THAT(paths, IsSupersetOf({Real("run/palmshed"), Real("lib/palmshed"), Real("chosen")}));
  EXPECT_THAT(paths, Not(Contains(Real("runtime/palmshed")))) << "of whoever called root";
}

TEST_F(PrivatePathsTest, NoneIsLeftOutWhereTheHostHasRunOutOfSomething) {
  const AsOrdinaryUser user(tree_);
  MakePlaces();
  const HostEnvironment host = User();
  const auto directories = OpenHostDirectories(host, tree_.At("chosen"));
  ASSERT_TRUE(directories) << directories.error().message;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto paths = PrivatePaths(host, *directories);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(paths);
  EXPECT_EQ(paths.error().code, ErrorCode::kOverloaded);
  EXPECT_TRUE(PrivatePaths(host, *directories)) << "control";
}

TEST(HostEnvironmentTest, ReadsThisProcess) {
  // NOLINTBEGIN(misc-include-cleaner): the check does not know that <cstdlib> has setenv.
  ASSERT_EQ(::setenv("TMPDIR", "/elsewhere", 1), 0);
  ASSERT_EQ(::setenv("XDG_STATE_HOME", "/state", 1), 0);
  const HostEnvironment host = ReadHostEnvironment();
  ::unsetenv("TMPDIR");
  ::unsetenv("XDG_STATE_HOME");
  // NOLINTEND(misc-include-cleaner)
  EXPECT_EQ(host.uid, ::geteuid());
  EXPECT_EQ(host.temporary, "/elsewhere");
  EXPECT_EQ(host.state_home, "/state");
  EXPECT_EQ(ReadHostEnvironment().temporary, "/tmp");
}

}  // namespace
}  // namespace palmshed::backends::native
