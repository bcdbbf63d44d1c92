// What a sandbox could reach through processes: descriptors, /proc, signals, debuggers, the helper.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/keyctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class EscapeProcesses : public KernelTest {};

constexpr char kThreeDescriptors[] = "0\n1\n2\n";

void OpenAtFixedPlaces(const TempDir& directory) {
  const int file = ::open(directory.AddFile("secret", "canary").c_str(), O_RDONLY);
  const int folder = ::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY);
  // Without close-on-exec, as careless host programs have them.
  ASSERT_EQ(::dup2(file, 9), 9);
  ASSERT_EQ(::dup2(folder, 10), 10);
  ASSERT_EQ(::dup2(file, 2048), 2048);
}

// E4, C017
TEST_F(EscapeProcesses, NoDescriptorOfTheHostProgramIsInherited) {
  InForkedProcess([] {
    const TempDir secrets, root;
    OpenAtFixedPlaces(secrets);
    const HostRun control = RunOnHost({ProbePath(), "descriptors"}, As::kSelf);
    ASSERT_THAT(control.out, HasSubstr("\n2048\n"));
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    std::vector<Execution> running;
    for (int i = 0; i < 20; ++i) {
      running.push_back(Must(sandbox.Start({"./probe", "descriptors"})));
    }
    for (const Execution& execution : running) {
      EXPECT_THAT(Must(execution.Wait()), ExitedWith(0, kThreeDescriptors));
    }
    const ExecResult run = ExecShell(sandbox, "cat <&9; ls /proc/self/fd/10/; cat /proc/self/fd/9");
    EXPECT_EQ(run.out.bytes, "");
  });
}

// E4: also with a host program that has closed its standard streams.
TEST_F(EscapeProcesses, ClosedStandardStreamsOfTheHostProgramChangeNothing) {
  InForkedProcess([] {
    const TempDir root;
    const int kept = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 100);
    for (const int fd : {0, 1, 2}) ::close(fd);
    {
      Engine engine = MakeEngine(root);
      Sandbox sandbox = MakeSandboxIn(engine);
      EXPECT_THAT(Exec(sandbox, {"./probe", "descriptors"}), ExitedWith(0, kThreeDescriptors));
      EXPECT_THAT(ExecShell(sandbox, "cat; echo done; echo oops >&2"), ExitedWith(0, "done\n"));
    }
    for (const int fd : {0, 1, 2}) ::dup2(kept, fd);
  });
}

// E5, C016
TEST_F(EscapeProcesses, OnlyTheSandboxsOwnProcessesAreVisible) {
  ASSERT_EQ(::setenv("PALMSHED_TEST_SECRET", "canary-of-the-host-program", 1), 0);
  Sandbox other = MakeSandbox({.env = {{"OTHER", "canary-of-the-other"}}});
  const std::string name = UniqueName();
  AddProbe(other, name);
  const Execution running = Must(other.Start({"./" + name, "stay", "canary-in-argv"}));
  ASSERT_TRUE(AwaitOutput(running, "ready"));

  Sandbox sandbox = MakeSandbox();
  const std::string look =
      "for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; tr '\\0' ' ' < $p/cmdline; "
      "cat $p/task/*/environ $p/comm; ls -l $p/fd $p/cwd $p/root; done 2>/dev/null";
  ASSERT_THAT(RunOnHost({"sh", "-c", look}, As::kSelf).out,
              HasSubstr("canary-of-the-host-program"));
  ASSERT_THAT(ExecShell(other, look).out.bytes, HasSubstr("canary-in-argv"));
  const std::string seen = ExecShell(sandbox, look).out.bytes;
  EXPECT_THAT(seen, Not(HasSubstr("canary")));
  EXPECT_THAT(seen, Not(HasSubstr(name)));
  EXPECT_THAT(seen, Not(HasSubstr(workspaces())));
  EXPECT_THAT(seen, HasSubstr("palmshed-init")) << "the sandbox's own init is there to be seen";
}

// C016: on the host anybody can read a command line.
TEST_F(EscapeProcesses, HelperCommandLinesOnTheHostCarryNoSecrets) {
  // Of this test alone: what is a helper of another engine now may be its program a moment later.
  const std::string canary = "canary-" + UniqueName();
  Sandbox sandbox = MakeSandbox({.env = {{"TOKEN", canary}}});
  const Execution running = Must(sandbox.Start({"./probe", "stay", canary},
                                               {.env = {{"MORE", canary}}, .stdin_bytes = canary}));
  ASSERT_TRUE(AwaitOutput(running, "ready"));
  const std::vector<HostProcess> helpers = FindProcesses("palmshed-init");
  ASSERT_FALSE(helpers.empty());
  for (const HostProcess& helper : helpers) {
    const std::string line =
        RunOnHost({"cat", "/proc/" + std::to_string(helper.pid) + "/cmdline"}).out;
    EXPECT_THAT(line, Not(HasSubstr(canary)));
  }
}

TEST_F(EscapeProcesses, InitCannotBeTracedOrLookedInto) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_EQ(Exec(sandbox, {"./probe", "trace-other", "1"}).exit_code, kRefused);
  for (const char* file : {"mem", "environ", "maps", "exe", "fd/3", "root/etc/passwd"}) {
    const ExecResult run = Exec(sandbox, {"./probe", "read", std::string("/proc/1/") + file});
    EXPECT_EQ(run.exit_code, kRefused) << file << ": " << run.out.bytes;
  }
  // The control: what a process may do to its own kind.
  EXPECT_EQ(Exec(sandbox, {"./probe", "trace-child"}).exit_code, kReached);
  EXPECT_EQ(Exec(sandbox, {"./probe", "read", "/proc/self/exe"}).exit_code, kReached);
}

// Init has the uid of its workloads. It must not spin, outside of every limit, nor leave anybody
// waiting.
TEST_F(EscapeProcesses, WhoTakesItsInitsDescriptorsAwayEndsItsOwnSandbox) {
  for (const ExecOptions& options : {ExecOptions{}, ExecOptions{.memory = Bytes{256U << 20}}}) {
    const TempDir root;
    Engine engine = MakeEngine(root);
    Sandbox bystander = MakeSandboxIn(engine);
    Sandbox sandbox = MakeSandboxIn(engine);
    // The first may be through before anybody waits again.
    Result<ExecResult> run = sandbox.Run({"./probe", "take-descriptors"}, options);
    for (int again = 0; run && run->ok() && again < 3; ++again)
      run = sandbox.Run({"true"}, options);
    if (run) {
      EXPECT_FALSE(run->ok()) << run->out.bytes;
    }
    const auto lost = sandbox.Run({"true"}, options);
    EXPECT_FALSE(lost && lost->ok());
    EXPECT_THAT(ExecShell(bystander, "echo works"), ExitedWith(0, "works\n"));
    EXPECT_TRUE(sandbox.Destroy());
  }
}

TEST_F(EscapeProcesses, ProcessesOfTheHostCannotBeSignalled) {
  const std::string self = std::to_string(::getpid());
  Sandbox sandbox = MakeSandbox();
  EXPECT_EQ(RunOnHost({ProbePath(), "may-signal", self}, As::kSelf).exit_code, kReached);
  EXPECT_EQ(Exec(sandbox, {"./probe", "may-signal", self}).exit_code, kRefused);
}

TEST_F(EscapeProcesses, KillingEverythingEndsNeitherInitNorOtherExecutions) {
  Sandbox sandbox = MakeSandbox();
  const Execution bystander = Must(sandbox.Start({"./probe", "stay"}));
  ASSERT_TRUE(AwaitOutput(bystander, "ready"));
  EXPECT_THAT(ExecShell(sandbox, "sleep 60 & kill -9 -1; echo still here"),
              ExitedWith(0, "still here\n"));
  EXPECT_EQ(bystander.status(), Status::kRunning);
  EXPECT_EQ(Exec(sandbox, {"./probe", "may-signal", "1"}).exit_code, kRefused);
  EXPECT_THAT(ExecShell(sandbox, "echo works"), ExitedWith(0, "works\n"));
}

// C100
TEST_F(EscapeProcesses, HelperCannotBeRewrittenThroughProc) {
  Sandbox sandbox = MakeSandbox();
  Must(sandbox.WriteFile("self", "#!/proc/self/exe\n", 0755));
  Must(sandbox.WriteFile("attack.sh",
                         "for i in $(seq 40); do for p in /proc/[0-9]*; do\n"
                         "  (exec 3>>$p/exe) 2>/dev/null && readlink $p/exe\n"
                         "done; done; true\n"));
  const Execution attack = Must(sandbox.StartShell("sh attack.sh", {.timeout = Millis(30'000)}));
  while (!attack.result()) {
    EXPECT_NE(Exec(sandbox, {"./self"}).exit_code, 0);
  }
  EXPECT_THAT(Must(attack.Wait()), ExitedWith(0, ""));
  // The control: a program that nobody executes can be opened so.
  EXPECT_THAT(ExecShell(sandbox, "cp probe copy; (exec 3>>copy) && echo open"),
              ExitedWith(0, "open\n"));
  EXPECT_THAT(ExecShell(sandbox, "echo works"), ExitedWith(0, "works\n"));
}

// C095
TEST_F(EscapeProcesses, KeysOfTheHostProgramAreInvisible) {
  constexpr char kDescription[] = "palmshed-canary-key";
  ASSERT_GE(::syscall(SYS_add_key, "user", kDescription, "x", 1, KEY_SPEC_PROCESS_KEYRING), 0);
  ASSERT_THAT(Slurp("/proc/keys"), HasSubstr(kDescription));
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(ExecShell(sandbox, "cat /proc/keys").out.bytes, Not(HasSubstr(kDescription)));
}

// C061, C095: the objects that live in an IPC namespace or beside it.
TEST_F(EscapeProcesses, SharedMemoryIsTheSandboxsOwn) {
  PALMSHED_SKIP_UNLESS(OnPath("ipcmk") && OnPath("ipcs"), "no ipcmk or ipcs on this host");
  Sandbox first = MakeSandbox(), second = MakeSandbox();
  const std::string list = "ipcs -m -q | grep -c '^0x' || true";
  EXPECT_EQ(ExecShell(first, "ipcmk -M 1048576 && ipcmk -Q").exit_code, 0);
  EXPECT_THAT(ExecShell(first, list), ExitedWith(0, "2\n"));
  EXPECT_THAT(ExecShell(second, list), ExitedWith(0, "0\n"));
}

// C061
TEST_F(EscapeProcesses, NothingOfOneSandboxMeetsTheNext) {
  Sandbox first = MakeSandbox();
  EXPECT_THAT(ExecShell(first, "echo x > /dev/shm/leak; echo x > /tmp/leak; ls /tmp /dev/shm"),
              ExitedWith(0, "/dev/shm:\nleak\n\n/tmp:\nleak\n"));
  Must(first.Destroy());
  Sandbox second = MakeSandbox();
  EXPECT_THAT(ExecShell(second, "ls /dev/shm /tmp"), ExitedWith(0, "/dev/shm:\n\n/tmp:\n"));
  EXPECT_FALSE(std::filesystem::exists("/tmp/leak"));
  EXPECT_FALSE(std::filesystem::exists("/dev/shm/leak"));
}

// C061
TEST_F(EscapeProcesses, BackgroundServerIsGoneInTheNextExecution) {
  Sandbox sandbox = MakeSandbox();
  const std::string name = UniqueName();
  AddProbe(sandbox, name);
  EXPECT_EQ(ExecShell(sandbox, "./" + name + " stay > log & while ! grep -q ready log; do :; done")
                .exit_code,
            0);
  EXPECT_TRUE(FindProcesses(name).empty());
  EXPECT_THAT(ExecShell(sandbox, "cat /proc/[0-9]*/comm | grep -c " + name), ExitedWith(1, "0\n"));
}

}  // namespace
}  // namespace palmshed::tests
