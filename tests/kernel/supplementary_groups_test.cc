// Supplementary groups of an ordinary user. The user, the group and the range of subordinate gids
// exist only in a mount namespace of the test's.
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "palmshed/palmshed.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

constexpr gid_t kExtraGroup = 61999;
constexpr char kNewgidmap[] = "/usr/bin/newgidmap";

class SupplementaryGroups : public KernelTest {
 protected:
  void SetUp() override {
    PALMSHED_SKIP_UNLESS(::geteuid() == 0, "only root can give a process groups");
    PALMSHED_SKIP_UNLESS(::access(kNewgidmap, X_OK) == 0, "newgidmap is missing");
  }
};

void Show(const TempDir& files, const std::string& name, const std::string& content) {
  const std::string shown = files.AddFile(name, content);
  ASSERT_EQ(::mount(shown.c_str(), ("/etc/" + name).c_str(), nullptr, MS_BIND, nullptr), 0);
}

void BecomeMemberOfAnotherGroup(const TempDir& files, const std::string& subgid) {
  const std::string ids = std::to_string(kPlainUid) + ":" + std::to_string(kPlainUid);
  ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
  ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  Show(files, "passwd", "root:x:0:0::/root:/bin/sh\nplain:x:" + ids + "::/:/bin/sh\n");
  Show(files, "subgid", subgid);
  ASSERT_EQ(::setgroups(1, &kExtraGroup), 0);
  ASSERT_EQ(::setresgid(kPlainUid, kPlainUid, kPlainUid), 0);
  ASSERT_EQ(::setresuid(kPlainUid, kPlainUid, kPlainUid), 0);
  ASSERT_EQ(::prctl(PR_SET_DUMPABLE, 1), 0);  // A change of credentials clears it.
  for (const char* name : {"XDG_RUNTIME_DIR", "XDG_STATE_HOME"}) ::unsetenv(name);
}

void ExpectGroups(const std::string& subgid, const std::string& inside, const std::string& word) {
  const TempDir files(0755);  // Of root's, and outside: only root can remove it again.
  InForkedProcess([&] {
    BecomeMemberOfAnotherGroup(files, subgid);
    ASSERT_EQ(RunOnHost({"id", "-G"}, As::kSelf).out,
              std::to_string(kPlainUid) + " " + std::to_string(kExtraGroup) + "\n");
    const TempDir root;
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    EXPECT_THAT(Exec(sandbox, {"id", "-G"}), ExitedWith(0, inside));
    EXPECT_EQ(Must(engine.GetCapabilities()).supplementary_groups, word);
  });
}

// C096
TEST_F(SupplementaryGroups, AreDroppedWhereTheUserHasSubordinateGids) {
  ExpectGroups("plain:700000:65536\n", "1000\n", "dropped");
}

// C096: 65534 is how a group that the namespace does not know looks from inside.
TEST_F(SupplementaryGroups, AreKeptAndReportedWhereThereAreNone) {
  ExpectGroups("other:700000:65536\n", "1000 65534\n", "kept");
}

// C096: the file promises what newgidmap(1) does not grant.
TEST_F(SupplementaryGroups, AreKeptAndReportedWhereTheProgramRefuses) {
  ExpectGroups(std::to_string(kPlainUid) + ":4294967295:1\n", "1000 65534\n", "kept");
}

}  // namespace
}  // namespace palmshed::tests
