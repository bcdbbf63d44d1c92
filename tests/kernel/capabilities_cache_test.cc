// What one process has found out by a self-test, others of the same user in the same surroundings
// need not find out again.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/kernel_test.h"
#include "support/must.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::string_view kMark = "seen by another process: ";

/// A new engine's answer: whether it has what only a stored document can have.
bool IsRemembered(const std::string& root, bool live = false) {
  Engine engine = Must(Engine::Create({.workspace_root = root}));
  const Capabilities capabilities = Must(engine.GetCapabilities("native", live));
  EXPECT_FALSE(capabilities.controls.empty());
  for (const Control& control : capabilities.controls) {
    if (control.detail.starts_with(kMark)) return true;
  }
  return false;
}

std::vector<std::string> StoredIn(const std::string& directory) {
  std::vector<std::string> found;
  if (!std::filesystem::exists(directory)) return found;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().filename().string().starts_with("capabilities-"))
      found.push_back(entry.path());
  }
  return found;
}

/// Changes what decides nothing: the next to read it can be told from one that has tested.
void Mark(const std::string& path) {
  struct stat before{};
  ASSERT_EQ(::stat(path.c_str(), &before), 0);
  EXPECT_EQ(before.st_mode & 07777, 0600U);
  std::string document = Slurp(path);
  constexpr std::string_view kDetail = R"("detail":")";
  const std::size_t at = document.find(kDetail);
  ASSERT_NE(at, document.npos);
  std::ofstream(path) << document.insert(at + kDetail.size(), kMark);
}

bool RulesCanBeRead() {
  const std::string status = Slurp("/proc/self/status");
  return status.find("\nNoNewPrivs:\t0\n") != status.npos &&
         status.find("\nSeccomp:\t0\n") != status.npos;
}

/// Every process has its state in one directory, which nobody else uses.
class CapabilitiesCache : public ::testing::Test {
 protected:
  CapabilitiesCache() {
    for (const TempDir* directory : {&runtime_, &root_}) {
      if (::geteuid() == 0) {
        EXPECT_EQ(::chown(directory->path().c_str(), kPlainUid, kPlainUid), 0);
      }
    }
  }

  void SetUp() override {
    PALMSHED_SKIP_UNLESS(RulesCanBeRead(), "this process has no new privileges, or a filter");
  }
  void InProcess(const std::function<void()>& body) const {
    AsOrdinaryUser([&] {
      // NOLINTNEXTLINE(misc-include-cleaner): the check does not know that <cstdlib> has it.
      ::setenv("XDG_RUNTIME_DIR", runtime_.path().c_str(), 1);
      body();
    });
  }
  std::vector<std::string> Stored() const { return StoredIn(runtime_.path() + "/palmshed"); }
  void TestAndMark() const {
    InProcess([this] { EXPECT_FALSE(IsRemembered(root_.path())); });
    ASSERT_THAT(Stored(), SizeIs(1));
    Mark(Stored().front());
  }
  void ExpectRemembered() const {
    InProcess([this] { EXPECT_TRUE(IsRemembered(root_.path())); });
  }

  const TempDir runtime_;
  const TempDir root_;
};

TEST_F(CapabilitiesCache, ASecondProcessDoesNotTestAgain) {
  TestAndMark();
  ExpectRemembered();
  ExpectRemembered();
}

TEST_F(CapabilitiesCache, ALiveTestIsOneAndReplacesWhatIsThere) {
  TestAndMark();
  ExpectRemembered();
  InProcess([this] { EXPECT_FALSE(IsRemembered(root_.path(), true)); });
  ASSERT_THAT(Stored(), SizeIs(1));
  InProcess([this] { EXPECT_FALSE(IsRemembered(root_.path())); });
}

TEST_F(CapabilitiesCache, OtherSurroundingsAreTestedAnew) {
  TestAndMark();
  ExpectRemembered();
  InProcess([this] {
    const rlimit none{};
    ASSERT_EQ(::setrlimit(RLIMIT_CORE, &none), 0);
    const rlimit fewer{.rlim_cur = 1000, .rlim_max = 1000};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &fewer), 0);
    EXPECT_FALSE(IsRemembered(root_.path()));
  });
  InProcess([] {
    const TempDir other;
    EXPECT_FALSE(IsRemembered(other.path()));
  });
}

TEST_F(CapabilitiesCache, NothingIsKeptUnderRulesThatCannotBeRead) {
  InProcess([this] {
    ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    EXPECT_FALSE(IsRemembered(root_.path()));
  });
  EXPECT_THAT(Stored(), IsEmpty());
  TestAndMark();
  InProcess([this] {
    ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    EXPECT_FALSE(IsRemembered(root_.path()));
  });
  ExpectRemembered();
}

TEST_F(CapabilitiesCache, ExecutionsDoNotNeedIt) {
  InProcess([this] {
    Engine engine = Must(Engine::Create({.workspace_root = root_.path()}));
    Sandbox sandbox = Must(engine.CreateSandbox());
    EXPECT_THAT(Exec(sandbox, {"true"}), ExitedWith(0, ""));
  });
  EXPECT_THAT(Stored(), IsEmpty());
}

/// A directory of state that others do not write to at the same time, but for the leases of uids,
/// which must stay the whole host's.
void HideState(const std::string& uids) {
  ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
  ASSERT_EQ(::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  const int keep = ::open(uids.c_str(), O_PATH | O_CLOEXEC);
  ASSERT_GE(keep, 0);
  ASSERT_EQ(::mount("tmpfs", "/run/palmshed", "tmpfs", 0, "mode=700"), 0);
  std::ofstream(uids).close();
  const std::string kept = "/proc/self/fd/" + std::to_string(keep);
  ASSERT_EQ(::mount(kept.c_str(), uids.c_str(), nullptr, MS_BIND, nullptr), 0);
  ::close(keep);
}

TEST(CapabilitiesCacheOfRoot, IsInRun) {
  PALMSHED_SKIP_UNLESS(::geteuid() == 0, "geteuid() is not 0");
  PALMSHED_SKIP_UNLESS(RulesCanBeRead(), "this process has no new privileges, or a filter");
  InForkedProcess([] {
    const TempDir root;
    (void)Must(Engine::Create({.workspace_root = root.path()})).CreateSandbox();  // Leases a uid.
    HideState("/run/palmshed/uids");
    EXPECT_FALSE(IsRemembered(root.path()));
    const auto stored = StoredIn("/run/palmshed");
    ASSERT_THAT(stored, SizeIs(1));
    Mark(stored.front());
    EXPECT_TRUE(IsRemembered(root.path()));
    EXPECT_FALSE(IsRemembered(root.path(), true));
  });
}

}  // namespace
}  // namespace palmshed::tests
