// Who is moved out of a group of cgroup v2, and who is not. Any hierarchy will do, one without
// controllers included.
#include "kernel/cgroup_room.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/ids.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "kernel/cgroup.h"
#include "kernel/cgroup_files.h"
#include "kernel/cgroup_place.h"
#include "kernel/cgroup_test_support.h"
#include "palmshed/error.h"

namespace palmshed::kernel {
namespace {

constexpr int kChildren = 5;

class RoomTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto host = ThisCgroupHost();
    ASSERT_TRUE(host);
    const auto place = FindPlace2(*host);
    if (!place) GTEST_SKIP() << "cgroup v2 is not mounted";
    const std::string group = place->group + "/" + MakeId("palmshed-test-");
    if (!host->make(group)) GTEST_SKIP() << "no group can be made in " << place->group;
    group_ = group;
    ASSERT_TRUE(host->make(below()));
    auto pipe = sys::Pipe();
    ASSERT_TRUE(pipe);
    ready_ = std::move(pipe->first);
    tell_ = std::move(pipe->second);
  }
  void TearDown() override {
    if (group_.empty()) return;
    (void)WriteGroupFile(group_ + "/cgroup.kill", "1");
    EXPECT_TRUE(RemoveCgroups({group_}));
  }

  std::string below() const { return group_ + "/engine"; }
  void Attach(const WaitingChild& child) const {
    ASSERT_GT(child.pid(), 0);
    ASSERT_TRUE(WriteGroupFile(group_ + "/cgroup.procs", std::to_string(child.pid())));
  }
  static std::ptrdiff_t CountIn(const std::string& group) {
    const auto processes = sys::ReadFile(group + "/cgroup.procs");
    return processes ? std::ranges::count(*processes, '\n') : -1;
  }
  void AwaitReady() const {
    char told = 0;
    ASSERT_EQ(::read(ready_.get(), &told, 1), 1);
  }

  /// Has children that stay, born where it is.
  int HaveChildren() const {
    for (int i = 0; i < kChildren; ++i) {
      const pid_t pid = ::fork();
      if (pid < 0) return 1;
      if (pid > 0) continue;
      (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (true) (void)::pause();
    }
    (void)!::write(tell_.get(), "r", 1);
    while (true) (void)::pause();
  }
  /// Has one child after another, each gone in no time.
  int HaveChildrenAllTheTime() const {
    bool told = false;
    while (true) {
      const pid_t pid = ::fork();
      if (pid < 0) return 1;
      if (pid == 0) ::_exit(0);
      (void)::waitpid(pid, nullptr, 0);
      if (!std::exchange(told, true)) (void)!::write(tell_.get(), "r", 1);
    }
  }

  std::string group_;
  UniqueFd ready_;
  UniqueFd tell_;
};

TEST_F(RoomTest, ProcessMovesWithAllThatItHasStarted) {
  WaitingChild engine([this] { return HaveChildren(); });
  Attach(engine);
  engine.Go();
  AwaitReady();
  ASSERT_EQ(CountIn(group_), kChildren + 1) << "the control";
  const auto moved = MoveDescendants(group_, below(), engine.pid());
  EXPECT_TRUE(moved) << moved.error().message;
  EXPECT_EQ(CountIn(group_), 0);
  EXPECT_EQ(CountIn(below()), kChildren + 1);
}

TEST_F(RoomTest, ProcessThatStartsOthersAllTheTimeIsMovedToo) {
  WaitingChild engine([this] { return HaveChildrenAllTheTime(); });
  Attach(engine);
  engine.Go();
  AwaitReady();
  const auto moved = MoveDescendants(group_, below(), engine.pid());
  EXPECT_TRUE(moved) << moved.error().message;
  EXPECT_EQ(CountIn(group_), 0);
}

TEST_F(RoomTest, NobodyIsMovedWhereAStrangerIs) {
  WaitingChild engine([this] { return HaveChildren(); });
  Attach(engine);
  engine.Go();
  AwaitReady();
  {
    const WaitingChild stranger([] { return 0; });
    Attach(stranger);
    const auto moved = MoveDescendants(group_, below(), engine.pid());
    ASSERT_FALSE(moved);
    EXPECT_EQ(moved.error().sys_errno, EBUSY);
    EXPECT_EQ(CountIn(group_), kChildren + 2);
    EXPECT_EQ(CountIn(below()), 0);
  }
  EXPECT_TRUE(MoveDescendants(group_, below(), engine.pid())) << "the control";
}

TEST_F(RoomTest, EmptyGroupHasRoomAlready) {
  EXPECT_TRUE(MoveDescendants(group_, below(), ::getpid()));
  EXPECT_EQ(CountIn(below()), 0);
}

}  // namespace
}  // namespace palmshed::kernel
