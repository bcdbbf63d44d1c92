// What a workload inherits: nothing that the host program happens to have. The host program here
// has everything set oddly before it makes its engine.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "palmshed/palmshed.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Attributes : public KernelTest {};

std::string AttributesInside() {
  const TempDir root;
  Engine engine = MakeEngine(root);
  Sandbox sandbox = MakeSandboxIn(engine);
  const ExecResult run = Exec(sandbox, {"./probe", "attributes"});
  EXPECT_EQ(run.exit_code, 0) << ::testing::PrintToString(run);
  return run.out.bytes;
}

void LowerSoftLimit(__rlimit_resource_t resource, rlim_t value) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(resource, &limit), 0);
  limit.rlim_cur = value;
  ASSERT_EQ(::setrlimit(resource, &limit), 0);
}

void IgnoreAndBlockSignals() {
  for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGUSR2}) {
    ASSERT_NE(::signal(signal, SIG_IGN), SIG_ERR);
  }
  // Waiting for children of one's own needs the default.
  ASSERT_NE(::signal(SIGCHLD, SIG_DFL), SIG_ERR);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigaddset(&blocked, SIGALRM);
  ASSERT_EQ(::sigprocmask(SIG_BLOCK, &blocked, nullptr), 0);
}

/// Whatever the kernel lets an ordinary user undo again.
void BecomeOdd() {
  LowerSoftLimit(RLIMIT_NOFILE, 300);
  LowerSoftLimit(RLIMIT_STACK, 1 << 20);
  LowerSoftLimit(RLIMIT_FSIZE, 64 << 20);
  LowerSoftLimit(RLIMIT_CPU, 1000);
  LowerSoftLimit(RLIMIT_MEMLOCK, 0);
  IgnoreAndBlockSignals();
  (void)::umask(0);
  ASSERT_EQ(::chdir("/usr"), 0);
  ASSERT_EQ(::syscall(SYS_ioprio_set, 1, 0, (2 << 13) | 7), 0);
  ASSERT_EQ(::prctl(PR_SET_TIMERSLACK, 1'000'000), 0);
  ASSERT_EQ(::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
  ASSERT_NE(::personality(ADDR_NO_RANDOMIZE), -1);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(::write(score, "500", 3), 3);
  ::close(score);
}

/// What the body prints comes back through a file: the processes share nothing else.
std::string InsideOf(const std::function<void()>& prepare) {
  const TempDir shared;
  const std::string file = shared.path() + "/attributes";
  InForkedProcess([&] {
    prepare();
    const std::string attributes = AttributesInside();
    const mode_t mask = ::umask(0);
    (void)shared.AddFile("attributes", attributes);
    (void)::umask(mask);
  });
  return Slurp(file);
}

TEST_F(Attributes, AreTheSameWhateverTheHostProgramHas) {
  const std::string plain = InsideOf([] {}), odd = InsideOf(BecomeOdd);
  EXPECT_EQ(plain, odd);
  InForkedProcess([] {
    BecomeOdd();
    const std::string here = RunOnHost({ProbePath(), "attributes"}, As::kSelf).out;
    EXPECT_THAT(here, AllOf(HasSubstr("rlimit-nofile 300 "), HasSubstr("timerslack 1000000"),
                            HasSubstr("thp-disable 1"), HasSubstr("personality 40000"),
                            HasSubstr("cpus 1\n"), HasSubstr("oom_score_adj 500"),
                            Not(HasSubstr("cwd /workspace"))));
  });
}

// C077
TEST_F(Attributes, AreACleanSlate) {
  const std::string inside = InsideOf(BecomeOdd);
  for (const char* line :
       {"SigBlk:\t0000000000000000\n", "SigIgn:\t0000000000000000\n", "SigCgt:\t0000000000000000\n",
        "Umask:\t0022\n", "nice 0\n", "ioprio 0\n", "scheduler 0\n", "timerslack 50000\n",
        "thp-disable 0\n", "personality 0\n", "oom_score_adj 0\n", "own-session 1\n",
        "cwd /workspace\n", "rlimit-core 0 0\n"}) {
    EXPECT_THAT(inside, HasSubstr(line));
  }
}

// C077
TEST_F(Attributes, SignalsWorkAsProgramsExpect) {
  PALMSHED_SKIP_UNLESS(OnPath("bash") && OnPath("python3"), "no bash or python3 on this host");
  InForkedProcess([] {
    IgnoreAndBlockSignals();
    const TempDir root;
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    EXPECT_THAT(Exec(sandbox, {"bash", "-c", "yes | head -1 >/dev/null; echo ${PIPESTATUS[@]}"}),
                ExitedWith(0, "141 0\n"));
    const ExecResult run = Exec(
        sandbox, {"python3", "-c", "import signal,time; signal.setitimer(0,.05); time.sleep(20)"});
    EXPECT_THAT(run, EndedBy(Cause::kSignaled));
    EXPECT_EQ(run.termination.signal, SIGALRM);
  });
}

// C071
TEST_F(Attributes, EnvironmentOfTheHostProgramStaysOutside) {
  InForkedProcess([] {
    for (const char* name : {"SECRET_X", "AWS_SECRET_ACCESS_KEY", "BASH_ENV", "ENV", "PYTHONPATH",
                             "NODE_OPTIONS", "LD_LIBRARY_PATH", "PERL5LIB", "GIT_DIR"}) {
      ASSERT_EQ(::setenv(name, "/canary", 1), 0);
    }
    const TempDir root;
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine, {.env = {{"MINE", "1"}, {"BOTH", "sandbox"}}});
    ASSERT_THAT(RunOnHost({"env"}, As::kSelf).out, HasSubstr("canary"));
    const ExecResult run = Exec(sandbox, {"env"}, {.env = {{"A", "2"}, {"BOTH", "execution"}}});
    EXPECT_THAT(run.out.bytes, Not(HasSubstr("canary")));
    EXPECT_THAT(run.out.bytes,
                AllOf(HasSubstr("MINE=1\n"), HasSubstr("A=2\n"), HasSubstr("BOTH=execution\n"),
                      HasSubstr("HOME=/workspace\n"), HasSubstr("PALMSHED_SANDBOX=1\n")));
    const ExecResult next = Exec(sandbox, {"env"});
    EXPECT_THAT(next.out.bytes, AllOf(HasSubstr("BOTH=sandbox\n"), Not(HasSubstr("A=2"))));
  });
}

}  // namespace
}  // namespace palmshed::tests
