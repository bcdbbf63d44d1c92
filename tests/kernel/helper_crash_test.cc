// Whoever dies takes everything below along. C007, C019.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cstdlib>

#include "support/helper_fixture.h"

namespace palmshed::testing {
namespace {

constexpr int kSoonMs = 2000;

UniqueFd OpenPidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

std::vector<UniqueFd> PidfdsOf(const std::vector<pid_t>& pids) {
  std::vector<UniqueFd> pidfds;
  for (const pid_t pid : pids) pidfds.push_back(OpenPidfd(pid));
  return pidfds;
}

void ExpectAllEnd(const std::vector<UniqueFd>& pidfds) {
  for (std::size_t i = 0; i < pidfds.size(); ++i) {
    ASSERT_TRUE(pidfds[i].valid());
    EXPECT_TRUE(IsReadable(pidfds[i].get(), kSoonMs)) << i;
  }
}

// A main process and an orphan in a session of its own.
Started StartSleepers(TestSandbox* sandbox) {
  Started started = sandbox->Start(
      {.argv = {"/bin/sh", "-c", "(setsid sh -c 'echo up; exec sleep 1000' &); exec sleep 1000"}});
  EXPECT_EQ(ReadUntil(started.out.get(), "up\n"), "up\n");
  return started;
}

// Another process that does what the engine does, then waits to be killed. It may leave a fork of
// itself, which holds all its sockets and outlives it.
class Engine {
 public:
  Engine(const HelperMode& mode, bool leaves_fork) {
    int report[2];
    if (::pipe2(report, O_CLOEXEC) != 0) return;
    const UniqueFd read_end(report[0]);
    UniqueFd write_end(report[1]);
    pid_ = ::fork();
    if (pid_ == 0) Work(mode, leaves_fork, write_end.get());
    write_end.reset();
    Report seen{};
    if (::read(read_end.get(), &seen, sizeof seen) != sizeof seen) return;
    fork_ = seen.fork;
    stage_ = seen.stage;
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() {
    if (fork_ > 0) ::kill(fork_, SIGKILL);
    Kill();
  }
  void Kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    (void)::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t stage() const { return stage_; }
  pid_t fork() const { return fork_; }

 private:
  struct Report {
    pid_t stage;
    pid_t fork;
  };

  [[noreturn]] void Work(const HelperMode& mode, bool leaves_fork, int report) {
    (void)::setenv("TMPDIR", scratch_.path().c_str(), 1);
    LauncherProcess launcher({.root = mode.root, .flags = mode.launcher_flags});
    TestSandbox sandbox(&launcher, {.flags = mode.init_flags});
    const Started started = StartSleepers(&sandbox);
    const pid_t fork = leaves_fork ? ::fork() : 0;
    if (leaves_fork && fork == 0) {
      for (;;) ::pause();
    }
    const Report seen{launcher.stage(), fork};
    (void)!::write(report, &seen, sizeof seen);
    for (;;) ::pause();
  }

  TempDirectory scratch_;
  pid_t pid_ = -1;
  pid_t stage_ = -1;
  pid_t fork_ = 0;
};

class HelperCrash : public HelperTest {};
INSTANTIATE_TEST_SUITE_P(Modes, HelperCrash, ::testing::ValuesIn(kEveryMode), ModeName);

TEST_P(HelperCrash, EverythingDiesWithTheEngine) {
  for (const bool leaves_fork : {false, true}) {
    Engine engine(GetParam(), leaves_fork);
    ASSERT_GT(engine.stage(), 0);
    std::vector<pid_t> processes = SettledDescendantsOf(engine.stage(), 4);
    processes.push_back(engine.stage());
    ASSERT_EQ(processes.size(), 5U);  // Stage, launcher, init, two workloads.
    const auto pidfds = PidfdsOf(processes);
    for (const UniqueFd& pidfd : pidfds) EXPECT_FALSE(IsReadable(pidfd.get(), 0));
    engine.Kill();
    ExpectAllEnd(pidfds);
    EXPECT_EQ(leaves_fork, engine.fork() > 0 && ::kill(engine.fork(), 0) == 0);
  }
}

TEST_P(HelperCrash, EverythingDiesWithTheStage) {
  const Started started = StartSleepers(&*sandbox_);
  const auto pidfds = PidfdsOf(SettledDescendantsOf(launcher_->stage(), 4));
  ASSERT_EQ(pidfds.size(), 4U);
  ASSERT_EQ(::kill(launcher_->stage(), SIGKILL), 0);
  ExpectAllEnd(pidfds);
}

TEST_P(HelperCrash, EverythingDiesWithTheLauncher) {
  const Started started = StartSleepers(&*sandbox_);
  const std::vector<pid_t> processes = SettledDescendantsOf(launcher_->stage(), 4);
  auto pidfds = PidfdsOf(processes);
  pidfds.push_back(OpenPidfd(launcher_->stage()));
  ASSERT_EQ(::kill(processes.front(), SIGKILL), 0);
  ExpectAllEnd(pidfds);
  EXPECT_FALSE(launcher_->Receive());  // The engine sees the end of the stream.
}

TEST_P(HelperCrash, TheWorkloadsDieWithTheirInitOnly) {
  TestSandbox other(&*launcher_, Spec());
  ASSERT_TRUE(other.ok()) << other.why_not();
  const Started started = StartSleepers(&*sandbox_);
  auto pidfds = PidfdsOf(SettledDescendantsOf(sandbox_->init_pid(), 2));
  ASSERT_EQ(pidfds.size(), 2U);
  ASSERT_EQ(::syscall(SYS_pidfd_send_signal, sandbox_->init_pidfd(), SIGKILL, nullptr, 0), 0);
  ExpectAllEnd(pidfds);
  EXPECT_TRUE(other.Run({.argv = {"/bin/true"}}).exited_with(0));
}

TEST_P(HelperCrash, TheSandboxEndsWithItsSocket) {
  const Started started = StartSleepers(&*sandbox_);
  auto pidfds = PidfdsOf(SettledDescendantsOf(sandbox_->init_pid(), 2));
  pidfds.push_back(OpenPidfd(sandbox_->init_pid()));
  ASSERT_EQ(pidfds.size(), 3U);
  sandbox_->CloseSocket();
  ExpectAllEnd(pidfds);
}

// C002: init is out of reach of the signals of its workloads.
TEST_P(HelperCrash, WorkloadsCannotEndInit) {
  const Finished finished = sandbox_->Shell(
      "for s in TERM INT HUP QUIT KILL STOP CHLD USR1 SEGV; do kill -$s 1; done; exit 0");
  EXPECT_TRUE(finished.exited_with(0)) << finished.err;
  EXPECT_TRUE(sandbox_->Shell("kill -9 -1; exit 3").exited_with(3));
  EXPECT_TRUE(sandbox_->Run({.argv = {"/bin/true"}}).exited_with(0));
}

}  // namespace
}  // namespace palmshed::testing
