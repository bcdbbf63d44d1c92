// The small things that programs take for granted: home, locale, /dev, shared memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/kernel_test.h"
#include "support/process.h"

namespace palmshed::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class RuntimeEnvironment : public KernelTest {};

// C034
TEST_F(RuntimeEnvironment, PythonFindsUserHomeAndTemporaryDirectory) {
  PALMSHED_SKIP_UNLESS(OnPath("python3"), "no python3 on this host");
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(Exec(sandbox, {"python3", "-c",
                             "import getpass,os,tempfile as t; print(getpass.getuser(), "
                             "os.path.expanduser('~'), os.path.dirname(t.mkdtemp()), '\u20ac')"}),
              ExitedWith(0, "sandbox /workspace /tmp \xe2\x82\xac\n"));
}

// C034
TEST_F(RuntimeEnvironment, LocaleIsUtf8) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(ExecShell(sandbox, "locale charmap"), ExitedWith(0, "UTF-8\n"));
}

// C034
TEST_F(RuntimeEnvironment, ToolsCanConfigureThemselves) {
  Sandbox sandbox = MakeSandbox();
  const std::vector<std::pair<const char*, const char*>> tools = {
      {"git", "git config --global user.name x && git config user.name"},
      {"npm", "npm config get cache"},
      {"go", "go env GOCACHE"},
      {"java", "java -version 2>&1"},
      {"node", "node -e 'console.log(os.homedir())'"}};
  int tried = 0;
  for (const auto& [program, command] : tools) {
    if (!OnPath(program)) continue;
    const ExecResult run = ExecShell(sandbox, command);
    EXPECT_EQ(run.exit_code, 0) << ::testing::PrintToString(run);
    EXPECT_NE(run.out.bytes, "") << program;
    ++tried;
  }
  PALMSHED_SKIP_UNLESS(tried > 0, "none of git, npm, go, java, node on this host");
}

// C059
TEST_F(RuntimeEnvironment, SharedMemoryWorks) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(ExecShell(sandbox,
                        "stat -c %a /dev/shm; head -c 64M /dev/zero > /dev/shm/x && "
                        "stat -c %s /dev/shm/x && rm /dev/shm/x"),
              ExitedWith(0, "1777\n67108864\n"));
}

// C059
TEST_F(RuntimeEnvironment, PythonMultiprocessingWorks) {
  PALMSHED_SKIP_UNLESS(OnPath("python3"), "no python3 on this host");
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(
      Exec(sandbox, {"python3", "-c",
                     "from concurrent.futures import ProcessPoolExecutor as P\n"
                     "import multiprocessing as m\n"
                     "print(list(P(2, mp_context=m.get_context('fork')).map(abs, [-1, -2])))"}),
      ExitedWith(0, "[1, 2]\n"));
}

// C060
TEST_F(RuntimeEnvironment, StandardStreamsCanBeReopened) {
  Sandbox sandbox = MakeSandbox();
  const ExecResult run = ExecShell(sandbox, "echo x > /dev/stdout; echo y > /dev/stderr");
  EXPECT_THAT(run, ExitedWith(0, "x\n"));
  EXPECT_EQ(run.err.bytes, "y\n");
  EXPECT_THAT(ExecShell(sandbox, "cat /dev/fd/0", {.stdin_bytes = "in"}), ExitedWith(0, "in"));
  EXPECT_THAT(ExecShell(sandbox, "echo z > f; cat /dev/fd/0 < f; cat /dev/stdin < f"),
              ExitedWith(0, "z\nz\n"));
}

// C060
TEST_F(RuntimeEnvironment, ProcessSubstitutionWorks) {
  PALMSHED_SKIP_UNLESS(OnPath("bash"), "no bash on this host");
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(
      Exec(sandbox, {"bash", "-c", "wc -l < <(printf 'a\\nb\\n'); diff <(echo a) <(echo a)"}),
      ExitedWith(0, "2\n"));
}

// C060
TEST_F(RuntimeEnvironment, CharacterDevicesBehave) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(ExecShell(sandbox, "head -c8 /dev/urandom | wc -c; head -c1 /dev/full | wc -c"),
              ExitedWith(0, "8\n1\n"));
  const ExecResult full = ExecShell(sandbox, "head -c1 /dev/zero > /dev/full");
  EXPECT_NE(full.exit_code, 0);
  EXPECT_THAT(full.err.bytes, HasSubstr("No space left"));
}

// C060
TEST_F(RuntimeEnvironment, PseudoterminalsWork) {
  PALMSHED_SKIP_UNLESS(OnPath("python3"), "no python3 on this host");
  Sandbox sandbox = MakeSandbox();
  const ExecResult run = Exec(sandbox, {"python3", "-c",
                                        "import os,pty\na,b=pty.openpty(); print(os.ttyname(b))\n"
                                        "os.write(b,b'x'); print(os.read(a,9))"});
  EXPECT_EQ(run.exit_code, 0) << run.err.bytes;
  EXPECT_THAT(run.out.bytes, StartsWith("/dev/pts/"));
}

TEST_F(RuntimeEnvironment, ProcShowsTheSandboxAlone) {
  Sandbox sandbox = MakeSandbox();
  // Beside init and this shell, at most the programs that it runs itself: it is the first here, so
  // nothing waits for the next.
  const ExecResult run = ExecShell(sandbox, "ls -d /proc/[0-9]* | wc -l");
  EXPECT_LE(std::stoi(run.out.bytes), 5);
  EXPECT_THAT(ExecShell(sandbox, "echo $$; cat /proc/self/stat >/dev/null && ls -d /proc/1"),
              ::testing::Not(ExitedWith(0, "")));
  for (const char* file : {"/proc/kcore", "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern"}) {
    EXPECT_EQ(Exec(sandbox, {"./probe", "open-for-writing", file}).exit_code, kRefused) << file;
  }
}

}  // namespace
}  // namespace palmshed::tests
