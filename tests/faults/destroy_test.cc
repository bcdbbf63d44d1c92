// Destroy goes on to its end though nobody can wait for the death of the sandbox as usual.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "faults/course.h"
#include "faults/life.h"
#include "faults/roles.h"
#include "palmshed/palmshed.h"
#include "support/kernel_test.h"
#include "support/must.h"
#include "support/process.h"
#include "support/residue.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// What there is to be waited for: with namespaces one death, without them also that of a guard.
constexpr std::string_view kWays[] = {"direct", "limited", "launched", "filtered"};

const Life& LifeCalled(std::string_view name) {
  for (const Life& life : kLives) {
    if (life.name == name) return life;
  }
  throw std::runtime_error("no such life");
}

/// Destroys one in which nothing runs, and one in which a program does.
void DestroyTwo(const Life& life, const std::string& root, const Progress& progress) {
  if (life.filtered && !RefuseNamespaces()) throw std::runtime_error("namespaces are not refused");
  Engine engine = Must(Engine::Create({.workspace_root = root}));
  SandboxOptions options;
  if (life.limited) options.disk_quota = 16_MiB;
  std::optional<Sandbox> first;
  if (life.launched) first.emplace(Must(engine.CreateSandbox()));
  for (const bool busy : {false, true}) {
    Sandbox sandbox = Must(engine.CreateSandbox(options));
    Must(sandbox.WriteFile("kept", "x"));
    std::optional<Execution> running;
    if (busy) running.emplace(Must(sandbox.StartShell("echo ready; exec sleep 100")));
    if (busy && !AwaitOutput(*running, "ready\n")) throw std::runtime_error("it does not start");
    progress.Enter(Phase::kDestroy);
    const auto destroyed = sandbox.Destroy();
    progress.Enter(Phase::kAfter);
    progress.Report(destroyed ? "destroyed" : destroyed.error().message);
    if (busy) progress.Report(std::string(ToString(Must(running->Wait()).termination.cause)));
  }
  if (first) Must(first->Destroy());
  for (const std::string& name : TreeOf(root)) progress.Report("left: " + name);
}

class FailingPoll : public ::testing::TestWithParam<std::string_view> {
 protected:
  /// With `error` as the answer to each poll(2) of the engine while it destroys, 0: none, and none
  /// of its descriptors watched from then on. Counts the polls.
  Course Destroy(const Life& life, int error, bool watches = true) {
    polls_ = 0;
    auto course = RunHost(
        [&](const Progress& progress) { DestroyTwo(life, root_.path(), progress); },
        [&](const Call& call, Roles&) {
          if (call.role != Role::kEngine || call.phase != Phase::kDestroy) return 0;
          const bool polls = call.number == SYS_poll || call.number == SYS_ppoll;
          polls_ += polls ? 1 : 0;
          const bool watched = call.number == SYS_epoll_ctl && call.arguments[1] == EPOLL_CTL_ADD;
          return polls || (watched && !watches) ? error : 0;
        });
    if (!course) throw std::runtime_error("no listener");
    return *std::move(course);
  }

  const TempDir root_;
  std::size_t polls_ = 0;
};

TEST_P(FailingPoll, LeavesNothingBehindAndNobodyWaiting) {
  const Life& life = LifeCalled(GetParam());
  PALMSHED_SKIP_UNLESS(life.IsPossible(), "an ordinary user without namespaces leads it");
  const Residue before = Residue::Snapshot();
  // EINVAL: of a process that may open no descriptor.
  for (const int error : {0, ENOMEM, EINVAL}) {
    SCOPED_TRACE(error);
    const Course course = Destroy(life, error);
    EXPECT_EQ(course.hung, "");
    EXPECT_EQ(course.ended, "");
    EXPECT_THAT(course.report, ElementsAre("destroyed", "destroyed", "cancelled"));
    EXPECT_THAT(course.stays, IsEmpty());
    EXPECT_THAT(Residue::Snapshot().Since(before), IsEmpty());
    EXPECT_GE(polls_, life.filtered ? 4U : 2U);
  }
}

/// Then the error says so, and all the same nobody is called back by what is gone.
TEST_P(FailingPoll, IsAnErrorWhereNothingElseCanWaitEither) {
  const Life& life = LifeCalled(GetParam());
  PALMSHED_SKIP_UNLESS(life.IsPossible(), "an ordinary user without namespaces leads it");
  const Course course = Destroy(life, ENOMEM, false);
  EXPECT_EQ(course.hung, "");
  EXPECT_EQ(course.ended, "");
  ASSERT_GE(course.report.size(), 3U);
  EXPECT_THAT(course.report[0], StartsWith("epoll_ctl: "));
  EXPECT_THAT(course.report[1], StartsWith("epoll_ctl: "));
  EXPECT_EQ(course.report[2], "cancelled");
  EXPECT_THAT(course.stays, IsEmpty());
  EXPECT_THAT(TreeOf(root_.path()), IsEmpty());
}

std::string NameOfTest(const ::testing::TestParamInfo<std::string_view>& info) {
  return std::string(info.param);
}

INSTANTIATE_TEST_SUITE_P(All, FailingPoll, ::testing::ValuesIn(kWays), NameOfTest);

}  // namespace
}  // namespace palmshed::tests
