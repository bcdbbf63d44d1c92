// The helper without namespaces: whom it refuses to serve.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>

#include "child/image.h"
#include "child/wire.h"
#include "support/helper_driver.h"
#include "support/helper_fixture.h"

namespace palmshed::testing {
namespace {

constexpr std::uint64_t kScopeSignal = 2;
constexpr unsigned kLandlockVersion = 1;

class HelperFiltered : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::getuid() != 0) GTEST_SKIP() << "needs root, to be both users";
    const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, kLandlockVersion);
    if (abi < 6) GTEST_SKIP() << "Landlock has no scopes here, its version is " << abi;
  }
};

// kill(-1) of root reaches the whole machine.
TEST_F(HelperFiltered, SupervisorRefusesRoot) {
  const LauncherProcess ordinary({.root = false, .stage_flags = child::kStageFiltered});
  EXPECT_TRUE(IsReady(ordinary)) << Explain(ordinary);
  const LauncherProcess root({.root = true, .stage_flags = child::kStageFiltered});
  ASSERT_TRUE(root.ready());
  EXPECT_EQ(root.ready()->answer, child::LauncherAnswer::kFailed);
  EXPECT_EQ(root.ready()->step, child::Step::kSignalScope);
  EXPECT_EQ(root.ready()->sys_errno, EPERM);
}

UniqueFd HelperProgram() {
  UniqueFd program(::memfd_create("palmshed-init", MFD_CLOEXEC));
  const auto image = child::HelperImage();
  EXPECT_EQ(::write(program.get(), image.data(), image.size()), static_cast<ssize_t>(image.size()));
  return program;
}

// Init's parent is of the same user, as the supervisor is, and stays until init has ended.
[[noreturn]] void SuperviseInChild(uid_t user, int socket, int program) {
  if (::setresgid(user, user, user) < 0 || ::setresuid(user, user, user) < 0) ::_exit(3);
  const pid_t init = ::fork();
  if (init == 0) {
    (void)::dup2(socket, child::kSocketFd);
    const char* const arguments[] = {"palmshed-init", "sandbox", nullptr};
    const char* const environment[] = {nullptr};
    (void)::syscall(SYS_execveat, program, "", arguments, environment, AT_EMPTY_PATH);
    ::_exit(4);
  }
  ::close(socket);
  (void)::waitpid(init, nullptr, 0);
  ::_exit(0);
}

/// What an init with such a configuration answers.
std::optional<child::InitReply> AnswerOfInit(uid_t user, std::uint32_t flags,
                                             std::uint64_t scoped) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) return std::nullopt;
  UniqueFd ours(pair[0]);
  UniqueFd theirs(::fcntl(pair[1], F_DUPFD_CLOEXEC, 100));
  ::close(pair[1]);
  const UniqueFd program = HelperProgram();
  child::InitConfig config{};
  config.flags = flags;
  config.scoped = scoped;
  (void)::send(ours.get(), &config, sizeof config, MSG_NOSIGNAL);
  const pid_t supervisor = ::fork();
  if (supervisor == 0) {
    ours.reset();
    SuperviseInChild(user, theirs.get(), program.get());
  }
  theirs.reset();
  const ReceivedMessage message = ReceiveWithDeadline(ours.get());
  ours.reset();  // Ends init.
  (void)::waitpid(supervisor, nullptr, 0);
  child::InitReply reply;
  if (message.bytes.size() != sizeof reply) return std::nullopt;
  std::memcpy(&reply, message.bytes.data(), sizeof reply);
  return reply;
}

constexpr std::uint32_t kFlags = child::kInitFiltered | child::kInitSignalScope;

void ExpectRefusal(const std::optional<child::InitReply>& reply) {
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->answer, child::InitAnswer::kFailed);
  EXPECT_EQ(reply->step, child::Step::kSignalScope);
  EXPECT_EQ(reply->sys_errno, EPERM);
}

TEST_F(HelperFiltered, InitServesAnOrdinaryUserInAScopeAndNobodyElse) {
  const auto served = AnswerOfInit(OrdinaryUid(), kFlags, kScopeSignal);
  ASSERT_TRUE(served);
  EXPECT_EQ(served->answer, child::InitAnswer::kReady) << child::StepName(served->step);
  ExpectRefusal(AnswerOfInit(0, kFlags, kScopeSignal));
  ExpectRefusal(AnswerOfInit(OrdinaryUid(), kFlags, 0));
  ExpectRefusal(AnswerOfInit(OrdinaryUid(), child::kInitFiltered, kScopeSignal));
}

}  // namespace
}  // namespace palmshed::testing
