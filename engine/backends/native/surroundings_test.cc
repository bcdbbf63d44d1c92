#include "backends/native/surroundings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "backends/native/state_paths.h"
#include "base/sys.h"
#include "workspace/test_tree.h"

namespace palmshed::backends::native {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using workspace::TestTree;

constexpr std::string_view kStatus =
    "Name:\tpalmshed\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t\nCapInh:\t0\nCapPrm:\t1f\n"
    "CapEff:\t1f\nCapBnd:\t1f\nCapAmb:\t0\nNoNewPrivs:\t0\nSeccomp:\t0\nVmPeak:\t  123 kB\n";

std::string With(std::string_view old, std::string_view changed) {
  std::string text(kStatus);
  return text.replace(text.find(old), old.size(), changed);
}

TEST(Surroundings, StatusHasWhatAProcessMayDo) {
  const auto facts = FactsOfStatus(kStatus);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts, FactsOfStatus(With("123 kB", "456 kB")));
  EXPECT_NE(facts, FactsOfStatus(With("CapEff:\t1f", "CapEff:\t1e")));
  EXPECT_NE(facts, FactsOfStatus(With("CapBnd:\t1f", "CapBnd:\t1e")));
  EXPECT_NE(facts, FactsOfStatus(With("Groups:\t", "Groups:\t27 ")));
  EXPECT_NE(facts, FactsOfStatus(With("Uid:\t0\t0", "Uid:\t0\t1")));
}

TEST(Surroundings, RulesThatNobodyCanReadAreUnknown) {
  EXPECT_FALSE(FactsOfStatus(With("Seccomp:\t0", "Seccomp:\t2")));
  EXPECT_FALSE(FactsOfStatus(With("NoNewPrivs:\t0", "NoNewPrivs:\t1")));
  EXPECT_FALSE(FactsOfStatus(With("Seccomp:\t0", "Seccomp:\t")));
  EXPECT_FALSE(FactsOfStatus(With("Seccomp:\t0\n", "")));
  EXPECT_FALSE(FactsOfStatus(""));
}

TEST(Surroundings, MountsOfOtherPeopleDoNotMatter) {
  const std::string matter =
      "20 1 0:3 / / rw - ext4 /dev/sda rw\n"
      "21 20 0:4 / /proc rw shared:1 - proc proc rw\n"
      "22 21 0:5 / /proc/acpi ro - tmpfs tmpfs ro\n"
      "23 20 0:6 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
      "24 20 0:7 / /elsewhere rw - cgroup cgroup rw,memory\n";
  const std::string others =
      "25 20 0:8 / /process rw - tmpfs tmpfs rw\n"
      "26 20 0:9 / /home/a rw - ext4 /dev/sdb rw\n";
  EXPECT_EQ(MountsThatMatter(matter + others), matter);
  EXPECT_EQ(MountsThatMatter("nonsense\n\n - "), "");
}

TEST(Surroundings, NoTwoSetsOfFactsReadTheSame) {
  EXPECT_EQ(Join({{"a", "b"}}), Join({{"a", "b"}}));
  EXPECT_NE(Join({{"a", "b\nc 1\nd"}}), Join({{"a", "b"}, {"c", "d"}}));
  EXPECT_NE(Join({{"a", ""}}), Join({}));
}

class HostSurvey : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string status = sys::ReadFile("/proc/thread-self/status").value_or("");
    const bool free = status.find("\nNoNewPrivs:\t0\n") != status.npos &&
                      status.find("\nSeccomp:\t0\n") != status.npos;
    if (!free) GTEST_SKIP() << "this process has no new privileges, or a filter";
    ASSERT_TRUE(SurveyHost(host_, {}));
  }
  std::string Survey() const { return SurveyHost(host_, {})->facts; }

  const TestTree tree_;
  HostEnvironment host_{.uid = ::geteuid(),
                        .run = tree_.path(),
                        .lib = tree_.path(),
                        .runtime_home = tree_.path(),
                        .state_home = tree_.path(),
                        .temporary = "/tmp"};
};

TEST_F(HostSurvey, FindsTheSameTwiceAndMakesNothing) {
  const auto found = SurveyHost(host_, {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->facts, Survey());
  EXPECT_EQ(found->place, tree_.At("palmshed"));
  EXPECT_TRUE(tree_.Names().empty());
  for (const char* name : {"boot", "kernel", "lsm", "user", "/proc/thread-self/cgroup",
                           "/proc/sys/user/max_user_namespaces", "CapEff", "workspaces"}) {
    EXPECT_THAT(found->facts, HasSubstr("\n" + std::string(name) + " "));
  }
  EXPECT_THAT(found->facts, Not(HasSubstr("workspaces 6\nabsent")));
}

TEST_F(HostSurvey, SeesWhatHasChanged) {
  const std::string before = Survey();
  EXPECT_NE(SurveyHost(host_, {.workspace_root = "/var/tmp"})->facts, before);
  HostEnvironment elsewhere = host_;
  elsewhere.lib = elsewhere.state_home = "/proc";
  EXPECT_NE(SurveyHost(elsewhere, {})->facts, before) << "another mount";
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit was = limit;
  --limit.rlim_cur;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_NE(Survey(), before);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &was), 0);
  EXPECT_EQ(Survey(), before);
}

}  // namespace
}  // namespace palmshed::backends::native
