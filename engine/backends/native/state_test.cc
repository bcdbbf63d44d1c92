#include "backends/native/state.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/native/collector.h"
#include "base/ids.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "workspace/test_tree.h"

namespace palmshed::backends::native {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using workspace::TestTree;

constexpr char kId[] = "sbx_0123456789abcdef";

class StateTest : public ::testing::Test {
 protected:
  std::vector<std::string> Collect() const {
    auto collection = CollectDead(root_.fd.get());
    EXPECT_TRUE(collection);
    if (!collection) return {};
    EXPECT_THAT(collection->failures, IsEmpty());
    return collection->removed;
  }
  SandboxHome Make(const std::string& id = kId) {
    auto home = SandboxHome::Create(root_, id, std::nullopt);
    EXPECT_TRUE(home) << home.error().message;
    return std::move(*home);
  }
  std::string Name(const char* suffix) const { return std::string(kId) + suffix; }

  TestTree tree_;
  HostDirectory root_{.fd = UniqueFd(::open(tree_.path().c_str(), O_RDONLY | O_CLOEXEC)),
                      .path = tree_.path()};
};

TEST(SandboxId, IsRandomAndRecognised) {
  const std::string id = MakeId("sbx_");
  EXPECT_NE(id, MakeId("sbx_"));
  EXPECT_TRUE(IsSandboxId(id)) << id;
  EXPECT_FALSE(IsSandboxId("sbx_0123456789ABCDEF"));
  EXPECT_FALSE(IsSandboxId("sbx_0123456789abcde"));
  EXPECT_FALSE(IsSandboxId("sbx_0123456789abcdef0"));
  EXPECT_FALSE(IsSandboxId("abc_0123456789abcdef"));
}

TEST(StateNames, OnlyOursAreRecognised) {
  EXPECT_EQ(ParseStateName(kId)->kind, StateName::Kind::kHome);
  EXPECT_EQ(ParseStateName(std::string(kId) + ".lock")->kind, StateName::Kind::kLock);
  EXPECT_EQ(ParseStateName(std::string(kId) + ".trash")->kind, StateName::Kind::kTrash);
  EXPECT_FALSE(ParseStateName(std::string(kId) + ".lock2"));
  EXPECT_FALSE(ParseStateName("sbx_mine"));
  EXPECT_FALSE(ParseStateName("data"));
}

TEST_F(StateTest, MakesAPlaceForASandbox) {
  const mode_t old = ::umask(0077);
  const SandboxHome home = Make();
  ::umask(old);
  EXPECT_THAT(tree_.Names(), UnorderedElementsAre(kId, Name(".lock")));
  EXPECT_EQ(tree_.Mode(kId), 0700U);
  EXPECT_EQ(tree_.Mode(Name("/workspace")), 0700U);
  EXPECT_EQ(tree_.Mode(Name("/tmp")), 01777U);
  EXPECT_TRUE(S_ISREG(tree_.Lstat(Name(".lock")).st_mode));
  EXPECT_EQ(home.workspace_path(), tree_.At(Name("/workspace")));
}

TEST_F(StateTest, ItBelongsToTheSandboxsUid) {
  if (::geteuid() != 0) GTEST_SKIP() << "geteuid() is not 0: only root gives files away";
  ASSERT_TRUE(SandboxHome::Create(root_, kId, 54321));
  EXPECT_EQ(tree_.Lstat(kId).st_uid, 0U);
  EXPECT_EQ(tree_.Lstat(Name("/workspace")).st_uid, 54321U);
  EXPECT_EQ(tree_.Lstat(Name("/workspace")).st_gid, 54321U);
  EXPECT_EQ(tree_.Lstat(Name("/tmp")).st_uid, 54321U);
}

TEST_F(StateTest, AnIdIsUsedOnce) {
  const SandboxHome home = Make();
  const auto again = SandboxHome::Create(root_, kId, std::nullopt);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(tree_.Has(Name("/workspace")));
}

TEST_F(StateTest, RemoveLeavesNothing) {
  SandboxHome home = Make();
  tree_.Write(Name("/workspace/f"), "x");
  EXPECT_TRUE(home.Remove());
  EXPECT_THAT(tree_.Names(), IsEmpty());
  EXPECT_TRUE(home.Remove()) << "idempotent";
}

TEST_F(StateTest, RemoveFinishesAnInterruptedRemoval) {
  SandboxHome home = Make();
  tree_.Mkdir(Name(".trash"));
  tree_.Write(Name(".trash/f"), "x");
  EXPECT_TRUE(home.Remove());
  EXPECT_THAT(tree_.Names(), IsEmpty());
}

TEST_F(StateTest, TheCollectorSparesTheLiving) {
  const SandboxHome home = Make();
  EXPECT_THAT(Collect(), IsEmpty());
  EXPECT_TRUE(tree_.Has(Name("/workspace")));
}

TEST_F(StateTest, TheCollectorTakesTheDead) {
  {
    const SandboxHome home = Make();
    tree_.Write(Name("/workspace/f"), "x");
  }
  EXPECT_THAT(Collect(), ElementsAre(kId));
  EXPECT_THAT(tree_.Names(), IsEmpty());
}

TEST_F(StateTest, TheLockLivesAsLongAsItsHolder) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  SandboxHome home = Make();
  UniqueFd lock = home.TakeLock();
  const pid_t holder = ::fork();
  if (holder == 0) {
    ::close(pipe[1]);
    char byte;
    ::_exit(static_cast<int>(::read(pipe[0], &byte, 1)));  // Until the test lets go.
  }
  UniqueFd(pipe[0]).reset();
  lock.reset();
  EXPECT_THAT(Collect(), IsEmpty()) << "its holder lives";
  ::close(pipe[1]);
  ASSERT_EQ(::waitpid(holder, nullptr, 0), holder);
  EXPECT_THAT(Collect(), ElementsAre(kId)) << "its holder is dead";
}

TEST_F(StateTest, TheCollectorClearsAwayHalvesOfSandboxes) {
  tree_.Write(Name(".lock"), "");
  tree_.Mkdir("sbx_000000000000000a");
  tree_.Mkdir("sbx_000000000000000b.trash");
  tree_.Write("sbx_000000000000000b.trash/f", "x");
  // Of the first there was no sandbox yet.
  EXPECT_THAT(Collect(), UnorderedElementsAre("sbx_000000000000000a", "sbx_000000000000000b"));
  EXPECT_THAT(tree_.Names(), IsEmpty());
}

TEST_F(StateTest, LocksThatStandAloneAreHeldUntilTheyGo) {
  {
    const auto lock = LockAlone::Take(root_.fd.get());
    ASSERT_TRUE(lock);
    EXPECT_THAT(Collect(), IsEmpty());
    EXPECT_EQ(tree_.Names().size(), 1U);
  }
  EXPECT_THAT(tree_.Names(), IsEmpty());
}

TEST_F(StateTest, TheCollectorLeavesWhatIsNotOurs) {
  tree_.Write("notes.txt", "x");
  tree_.Mkdir("sbx_project");
  tree_.Write("sbx_project.lock", "");
  EXPECT_THAT(Collect(), IsEmpty());
  EXPECT_EQ(tree_.Names().size(), 3U);
}

TEST_F(StateTest, TheCollectorFollowsNoLinks) {
  TestTree outside;
  outside.Write("lock", "x");
  tree_.Link(outside.path(), kId);
  tree_.Link(outside.At("lock"), "sbx_000000000000000a.lock");
  const auto collection = CollectDead(root_.fd.get());
  ASSERT_TRUE(collection);
  EXPECT_THAT(collection->removed, ElementsAre(kId));
  ASSERT_EQ(collection->failures.size(), 1U);
  EXPECT_EQ(collection->failures[0].id, "sbx_000000000000000a");
  EXPECT_EQ(collection->failures[0].why.sys_errno, ELOOP);
  EXPECT_EQ(outside.Read("lock"), "x");
}

TEST_F(StateTest, AStaleRecordOfALiveProcessGoes) {  // C020
  tree_.Write(Name(".lock"), std::to_string(::getpid()));
  tree_.Mkdir(kId);
  EXPECT_THAT(Collect(), ElementsAre(kId));
}

TEST_F(StateTest, CollectorsNeverTakeWhatIsBeingMade) {  // C020
  std::vector<std::jthread> collectors;
  collectors.reserve(2);
  for (int i = 0; i < 2; ++i) {
    collectors.emplace_back([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) EXPECT_TRUE(CollectDead(root_.fd.get()));
    });
  }
  std::vector<SandboxHome> homes;
  for (int i = 0; i < 150; ++i) {
    const std::string id = MakeId("sbx_");
    auto home = SandboxHome::Create(root_, id, std::nullopt);
    ASSERT_TRUE(home) << home.error().message;
    EXPECT_TRUE(tree_.Has(id + "/workspace"));
    if (i % 3 != 0) continue;  // Dies at once.
    homes.push_back(std::move(*home));
  }
  collectors.clear();
  for (const SandboxHome& home : homes) {
    EXPECT_TRUE(tree_.Has(home.id() + "/tmp")) << home.id();
    EXPECT_TRUE(tree_.Has(home.id() + ".lock")) << home.id();
  }
  Collect();
  EXPECT_EQ(tree_.Names().size(), 2 * homes.size()) << "the dead ones are gone";
}

// Whose directory is seen without its lock file may have been made, and removed, since.
TEST_F(StateTest, CollectorsDoNotClaimWhatItsOwnerRemoved) {  // C020
  std::vector<std::jthread> collectors;
  collectors.reserve(2);
  for (int i = 0; i < 2; ++i) {
    collectors.emplace_back([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        const auto collection = CollectDead(root_.fd.get());
        ASSERT_TRUE(collection);
        EXPECT_THAT(collection->removed, IsEmpty());
        EXPECT_TRUE(collection->failures.empty());
      }
    });
  }
  for (int i = 0; i < 3000; ++i) {
    const auto removed = Make(MakeId("sbx_")).Remove();
    ASSERT_TRUE(removed) << removed.error().message;
  }
}

TEST_F(StateTest, DestroyAndCollectorAtOnceBothSucceed) {
  for (int round = 0; round < 50; ++round) {
    const std::string id = MakeId("sbx_");
    SandboxHome home = Make(id);
    for (int i = 0; i < 20; ++i) tree_.Write(id + "/workspace/" + std::to_string(i), "x");
    home.TakeLock().reset();
    std::jthread collector([&] {
      const auto collection = CollectDead(root_.fd.get());
      EXPECT_TRUE(collection && collection->failures.empty());
    });
    const auto removed = home.Remove();
    EXPECT_TRUE(removed) << removed.error().message;
    collector.join();
    EXPECT_THAT(tree_.Names(), IsEmpty());
  }
}

}  // namespace
}  // namespace palmshed::backends::native
