#include "kernel/task_clock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <ios>
#include <string>
#include <thread>

#include "base/sys.h"
#include "kernel/test_namespace.h"
#include "palmshed/error.h"
#include "workspace/test_tree.h"

namespace palmshed::kernel {
namespace {

// Runs `body` in a child with a clock on it; the seconds that the clock has counted.
double Count(const std::function<void()>& body, rusage* used = nullptr) {
  const Steps go;
  const pid_t child = ::fork();
  if (child == 0) {
    if (go.Await()) body();
    ::_exit(0);
  }
  auto clock = TaskClock::Open(child);
  EXPECT_TRUE(clock) << clock.error().message;
  go.Done();
  (void)::wait4(child, nullptr, 0, used);
  const auto counted = clock->Read();
  EXPECT_TRUE(counted);
  return std::chrono::duration<double>(*counted).count();
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// Making processes and threads costs something too, on a busy host more.
void ExpectBurnt(double counted, double seconds) {
  EXPECT_GE(counted, seconds - 0.01);
  EXPECT_LE(counted, seconds + 0.15);
}

// The host may forbid it: then CPU time is sampled, and there is nothing to test here.
bool IsAllowed() { return TaskClock::Open(::getpid()).has_value(); }

class TaskClockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!IsAllowed()) GTEST_SKIP() << "perf_event_open on this process is refused";
  }
};

TEST_F(TaskClockTest, SystemTimeCountsAsUserTimeDoes) {
  rusage used{};
  const double counted = Count(
      [] {
        const int null = ::open("/dev/zero", O_RDONLY);
        std::string buffer(1 << 20, 'x');
        for (int i = 0; i < 2000; ++i) (void)!::read(null, buffer.data(), buffer.size());
        Burn(0.05);
      },
      &used);
  EXPECT_GT(Seconds(used.ru_stime), 0.02);
  EXPECT_NEAR(counted, Seconds(used.ru_stime) + Seconds(used.ru_utime), 0.05);
}

TEST_F(TaskClockTest, SleepIsFree) {
  EXPECT_LT(Count([] { (void)::usleep(300'000); }), 0.02);
}

TEST_F(TaskClockTest, ThreadsCount) {
  const double counted = Count([] {
    std::thread other([] { Burn(0.1); });
    Burn(0.1);
    other.join();
  });
  ExpectBurnt(counted, 0.2);
}

TEST_F(TaskClockTest, ChildrenThatNobodyWaitsForCount) {
  const double counted = Count([] {
    (void)std::signal(SIGCHLD, SIG_IGN);
    for (int i = 0; i < 5; ++i) {
      if (::fork() == 0) {
        Burn(0.03);
        ::_exit(0);
      }
    }
    while (::wait(nullptr) > 0) {  // Until none is left: ECHILD.
    }
  });
  ExpectBurnt(counted, 0.15);
}

TEST_F(TaskClockTest, OrphansCountAfterTheirParentIsGone) {
  const Steps done;
  const Steps go;
  const pid_t child = ::fork();
  if (child == 0) {
    if (go.Await() && ::fork() == 0) {
      (void)::setsid();
      if (::fork() == 0) {
        Burn(0.1);
        done.Done();
      }
    }
    ::_exit(0);
  }
  const auto clock = TaskClock::Open(child);
  ASSERT_TRUE(clock);
  go.Done();
  (void)::waitpid(child, nullptr, 0);
  ASSERT_TRUE(done.Await());
  EXPECT_GE(*clock->Read(), std::chrono::milliseconds(99));
}

// A known way out, which is why what it says is compared with looks at /proc.
TEST_F(TaskClockTest, ProgramThatMayNotBeReadIsLost) {
  if (::getuid() == 0) GTEST_SKIP() << "root may read every program";
  const workspace::TestTree tree;
  const std::string program = tree.At("sh");
  {
    std::ifstream from("/bin/sh", std::ios::binary);
    std::ofstream(program, std::ios::binary) << from.rdbuf();
  }
  const auto run = [&] {
    (void)::execl(program.c_str(), "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done",
                  nullptr);
  };
  ASSERT_EQ(::chmod(program.c_str(), 0555), 0);
  EXPECT_GT(Count(run), 0.03);
  ASSERT_EQ(::chmod(program.c_str(), 0111), 0);
  EXPECT_LT(Count(run), 0.03);
}

// As the waiting child of a sandbox's init is, whose memory it shares: init cannot be inspected by
// its equals, but by the owner of the user namespace it was executed in.
TEST_F(TaskClockTest, ProcessThatIsNotDumpableCountsInAUserNamespaceOfOurs) {
  if (::getuid() == 0) GTEST_SKIP() << "root may inspect everything";
  const workspace::TestTree tree;
  const std::string program = tree.At("sh");
  {
    std::ifstream from("/bin/sh", std::ios::binary);
    std::ofstream(program, std::ios::binary) << from.rdbuf();
  }
  ASSERT_EQ(::chmod(program.c_str(), 0111), 0);
  // The first shell loses the capabilities that would allow to read the second.
  const std::string script = "exec " + program +
                             " -c 'echo >&2; read x; i=0;"
                             " while [ $i -lt 100000 ]; do i=$((i+1)); done'";
  const auto body = [&] {
    (void)::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
    return 1;
  };
  auto go = sys::Pipe();
  auto ready = sys::Pipe();
  ASSERT_TRUE(go && ready);
  const TestNamespace space({[&] {
    (void)::dup2(go->first.get(), STDIN_FILENO);
    (void)::dup2(ready->second.get(), STDERR_FILENO);
    return body();
  }});
  space.Go(0);
  ASSERT_TRUE(*sys::WaitReadable(ready->first.get(), 10'000));
  const std::string dumpable = "/proc/" + std::to_string(space.child(0)) + "/stat";
  struct stat owner{};
  ASSERT_EQ(::stat(dumpable.c_str(), &owner), 0);
  ASSERT_NE(owner.st_uid, ::getuid()) << "the program is dumpable: the test shows nothing";
  const auto clock = TaskClock::Open(space.child(0));
  ASSERT_TRUE(clock) << clock.error().message;
  (void)!::write(go->second.get(), "\n", 1);
  ASSERT_TRUE(space.AwaitEnd());
  EXPECT_GT(*clock->Read(), std::chrono::milliseconds(30));
}

TEST_F(TaskClockTest, OtherPeoplesProcessIsRefused) {
  if (::getuid() == 0) GTEST_SKIP() << "root may inspect everything";
  const auto clock = TaskClock::Open(1);
  ASSERT_FALSE(clock);
  EXPECT_EQ(clock.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace palmshed::kernel
