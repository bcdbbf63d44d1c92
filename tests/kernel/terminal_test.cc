// Executions on a terminal: that it is one, the sandbox's own, and that everything else holds there
// as it does without.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/filtered_rung.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kInterrupt = "\x03";
constexpr std::string_view kStop = "\x1a";

class Terminal : public KernelTest {};

ExecOptions OnTerminal() { return {.tty = TerminalSize{}}; }
ExecOptions Typing() { return {.env = {{"PS1", ""}}, .stdin_pipe = true, .tty = TerminalSize{}}; }

void Type(const Execution& execution, std::string_view text) {
  Must(Execution(execution).Write(std::as_bytes(std::span(text))));
}

// ---- what it is

TEST_F(Terminal, StreamsAreOneOfTheSizeAskedFor) {
  Sandbox sandbox = MakeSandbox();
  const ExecResult result =
      ExecShell(sandbox, "test -t 0 && test -t 1 && test -t 2 && tty && stty size && echo oops >&2",
                {.tty = TerminalSize{.rows = 33, .columns = 111}});
  EXPECT_THAT(result, ExitedWith(0, "/dev/pts/0\r\n33 111\r\noops\r\n"));
  EXPECT_EQ(result.err.bytes, "");
  EXPECT_THAT(ExecShell(sandbox, "test -t 0 || test -t 1 || test -t 2"), ExitedWith(1, ""));
}

TEST_F(Terminal, LeadsASessionThatItControls) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(ExecShell(sandbox, "echo seen > /dev/tty", OnTerminal()), ExitedWith(0, "seen\r\n"));
  EXPECT_NE(ExecShell(sandbox, "echo seen > /dev/tty").exit_code, 0);
  const ExecResult ids =
      ExecShell(sandbox,
                "read pid name state parent group session terminal foreground rest </proc/$$/stat;"
                "[ $session = $$ ] && [ $foreground = $$ ] && echo leads",
                OnTerminal());
  EXPECT_THAT(ids, ExitedWith(0, "leads\r\n"));
}

TEST_F(Terminal, DeviceBelongsToTheSandboxesUser) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(ExecShell(sandbox, "[ -O $(tty) ] && echo owns", OnTerminal()),
              ExitedWith(0, "owns\r\n"));
}

TEST_F(Terminal, KindIsSetBelowWhatTheCallerSets) {
  Sandbox sandbox = MakeSandbox();
  const char* const show = "echo ${TERM-none}";
  EXPECT_THAT(ExecShell(sandbox, show, OnTerminal()), ExitedWith(0, "xterm-256color\r\n"));
  EXPECT_THAT(ExecShell(sandbox, show, {.env = {{"TERM", "dumb"}}, .tty = TerminalSize{}}),
              ExitedWith(0, "dumb\r\n"));
  EXPECT_THAT(ExecShell(sandbox, show), ExitedWith(0, "none\n"));
}

TEST_F(Terminal, CapabilityIsTrueWhereItWorks) {
  EXPECT_TRUE(Must(engine().GetCapabilities("native", true)).tty);
}

TEST_F(Terminal, WorksBesideTheHostsFiles) {
  Sandbox sandbox = MakeSandbox({.os_filesystem_isolation = false});
  EXPECT_THAT(ExecShell(sandbox, "tty", OnTerminal()), ExitedWith(0, "/dev/pts/0\r\n"));
}

// ---- size

TEST_F(Terminal, ResizingTellsTheForeground) {
  Sandbox sandbox = MakeSandbox();
  Execution running = Must(sandbox.StartShell(
      "trap 'stty size; exit 3' WINCH; echo ready; while :; do sleep 1 & wait; done",
      OnTerminal()));
  ASSERT_TRUE(AwaitOutput(running, "ready\r\n"));
  Must(running.Resize({.rows = 50, .columns = 132}));
  EXPECT_THAT(Must(running.Wait()), ExitedWith(3, "ready\r\n50 132\r\n"));
  EXPECT_THAT(running.Resize({}), FailsWith(ErrorCode::kConflict));
}

TEST_F(Terminal, ResizingAtOnceComesBeforeWhatIsTyped) {
  Sandbox sandbox = MakeSandbox();
  for (int i = 0; i < 20; ++i) {
    Execution running = Must(sandbox.StartShell("read go; stty size", Typing()));
    Must(running.Resize({.rows = 50, .columns = 132}));
    Type(running, "\n");
    EXPECT_THAT(Must(running.Wait()), ExitedWith(0, "\r\n50 132\r\n"));
  }
}

TEST_F(Terminal, ResizingIsRefusedWithoutOneAndWithoutASize) {
  Sandbox sandbox = MakeSandbox();
  Execution plain = Must(sandbox.StartShell("read x", {.stdin_pipe = true}));
  EXPECT_THAT(plain.Resize({}), FailsWith(ErrorCode::kConflict));
  EXPECT_THAT(plain.Resize({.rows = 0}), FailsWith(ErrorCode::kInvalidOptions));
  EXPECT_THAT(plain.Resize({.columns = 0}), FailsWith(ErrorCode::kInvalidOptions));
}

// ---- keys

TEST_F(Terminal, InterruptEndsTheForegroundAlone) {
  Sandbox sandbox = MakeSandbox();
  const Execution shell = Must(sandbox.Start({"sh", "-i"}, Typing()));
  Type(shell, "sh -c 'echo beg\"\"un; exec sleep 100'\n");
  ASSERT_TRUE(AwaitOutput(shell, "begun"));
  Type(shell, kInterrupt);
  Type(shell, "echo rc=$?\nexit 5\n");
  const ExecResult result = Must(shell.Wait());
  EXPECT_THAT(result, EndedBy(Cause::kExited));
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_THAT(result.out.bytes, HasSubstr("rc=130\r\n"));
}

TEST_F(Terminal, JobsStopAndComeBackToTheForeground) {
  Sandbox sandbox = MakeSandbox();
  const Execution shell = Must(sandbox.Start({"sh", "-i"}, Typing()));
  Type(shell, "sh -c 'echo beg\"\"un; read x; echo got-$x; echo fin\"\"ished'\n");
  ASSERT_TRUE(AwaitOutput(shell, "begun"));
  Type(shell, kStop);
  ASSERT_TRUE(AwaitOutput(shell, "Stopped"));
  Type(shell, "fg\nhello\n");
  ASSERT_TRUE(AwaitOutput(shell, "finished"));
  EXPECT_THAT(shell.out().Text(), HasSubstr("got-hello\r\n"));
  Type(shell, "sleep 100 &\nkill %1 && echo end\"\"ed\n");
  ASSERT_TRUE(AwaitOutput(shell, "ended"));
  Must(Execution(shell).CloseStdin());
  EXPECT_THAT(Must(shell.Wait()), EndedBy(Cause::kExited));
}

TEST_F(Terminal, InputIsEchoedUnlessTheProgramSaysOtherwise) {
  Sandbox sandbox = MakeSandbox();
  const Execution running =
      Must(sandbox.StartShell("read x; stty -echo; echo quiet; read y; echo $x-$y", Typing()));
  Type(running, "seen\n");
  ASSERT_TRUE(AwaitOutput(running, "quiet\r\n"));
  Type(running, "secret\n");
  EXPECT_THAT(Must(running.Wait()), ExitedWith(0, "seen\r\nquiet\r\nseen-secret\r\n"));
}

TEST_F(Terminal, EndOfInputIsTyped) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(ExecShell(sandbox, "cat; echo over", OnTerminal()), ExitedWith(0, "over\r\n"));
  for (const char* text : {"one\ntwo\n", "one\ntwo"}) {
    EXPECT_THAT(ExecShell(sandbox, "cat > copy; cat copy | od -An -c",
                          {.stdin_bytes = text, .tty = TerminalSize{}}),
                EndedBy(Cause::kExited));
    EXPECT_EQ(Must(sandbox.ReadFile("copy")), text);
  }
  Execution cat = Must(sandbox.Start({"cat"}, Typing()));
  Type(cat, "half a line");
  Must(cat.CloseStdin());
  Must(cat.CloseStdin());
  const ExecResult result = Must(cat.Wait());
  EXPECT_THAT(result, ExitedWith(0, "half a linehalf a line"));
  EXPECT_THAT(cat.Write({}), FailsWith(ErrorCode::kConflict));
}

TEST_F(Terminal, LargeInputArrivesWholeWhenLinesAreOff) {
  Sandbox sandbox = MakeSandbox();
  const Execution running =
      Must(sandbox.StartShell("stty raw -echo; echo ready; head -c 1000000 | wc -c", Typing()));
  ASSERT_TRUE(AwaitOutput(running, "ready\n"));
  Type(running, std::string(1'000'000, 'x'));
  EXPECT_THAT(Must(running.Wait()), ExitedWith(0, "ready\n1000000\n"));
}

// ---- output

TEST_F(Terminal, LargeOutputIsCompleteAndInOrder) {
  Sandbox sandbox = MakeSandbox();
  const ExecResult result =
      ExecShell(sandbox, "stty -opost; head -c 10485760 /dev/urandom | tee copy", OnTerminal());
  EXPECT_THAT(result, EndedBy(Cause::kExited));
  EXPECT_EQ(result.out.bytes.size(), 10485760U);
  EXPECT_TRUE(result.out.bytes == Must(sandbox.ReadFile("copy")));
}

TEST_F(Terminal, LastWordsAreNotLost) {
  Sandbox sandbox = MakeSandbox();
  const std::string words(5000, 'w');
  for (int i = 0; i < 50; ++i) {
    EXPECT_THAT(Exec(sandbox, {"printf", words}, OnTerminal()), ExitedWith(0, words));
  }
}

TEST_F(Terminal, CallbackThatLagsGetsEverything) {
  Sandbox sandbox = MakeSandbox();
  std::string all;
  ExecOptions options = OnTerminal();
  options.on_output = [&](Stream stream, std::span<const std::byte> bytes) {
    EXPECT_EQ(stream, Stream::kStdout);
    all.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  const ExecResult result = ExecShell(sandbox, "stty -opost; seq 1 400000", options);
  EXPECT_TRUE(result.ok());
  EXPECT_THAT(all, EndsWith("\n400000\n"));
  EXPECT_EQ(all.size(), result.out.total);
}

TEST_F(Terminal, ProgramMayCloseItsDescriptorsAndOpenItAgain) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(
      ExecShell(sandbox, "exec </dev/null >/dev/null 2>&1; sleep 0.2; exec >/dev/tty; echo back",
                OnTerminal()),
      ExitedWith(0, "back\r\n"));
}

TEST_F(Terminal, InputThatNobodyHasReadAtTheEndIsNoFault) {
  Sandbox sandbox = MakeSandbox();
  const std::string much(1 << 20, '\n');
  for (int i = 0; i < 20; ++i) {
    Execution running =
        Must(sandbox.StartShell("stty -echo; echo ready; read x; exit 3", Typing()));
    ASSERT_TRUE(AwaitOutput(running, "ready\r\n"));
    Type(running, much);
    EXPECT_THAT(Must(running.Wait()), ExitedWith(3, "ready\r\n"));
  }
}

// ---- ends

TEST_F(Terminal, EndsAreTheSameAsWithout) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_EQ(ExecShell(sandbox, "exit 7", OnTerminal()).exit_code, 7);
  EXPECT_EQ(ExecShell(sandbox, "kill -9 $$", OnTerminal()).termination.signal, SIGKILL);
  EXPECT_THAT(
      ExecShell(sandbox, "trap '' HUP; sleep 100", {.timeout = Millis(200), .tty = TerminalSize{}}),
      EndedBy(Cause::kWallTimeout));
  const ExecResult missing = Exec(sandbox, {"./no-such-program"}, OnTerminal());
  EXPECT_THAT(missing, EndedBy(Cause::kStartupFailed));
  EXPECT_EQ(missing.termination.stage, "exec");
  Execution cancelled = Must(sandbox.StartShell("echo ready; sleep 100", OnTerminal()));
  ASSERT_TRUE(AwaitOutput(cancelled, "ready\r\n"));
  Must(cancelled.Cancel());
  EXPECT_THAT(Must(cancelled.Wait()), EndedBy(Cause::kCancelled));
}

TEST_F(Terminal, WhatIsLeftInTheBackgroundEndsWithIt) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(ExecShell(sandbox, "(trap '' HUP; exec sleep 100) & exit 0", OnTerminal()),
              ExitedWith(0, ""));
  EXPECT_THAT(ExecShell(sandbox, "for f in /proc/[0-9]*/comm; do cat $f; done | grep -c sleep"),
              ExitedWith(1, "0\n"));
}

/// Of this process, whatever they belong to.
int TerminalDescriptors() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    count += ::isatty(std::stoi(entry.path().filename()));
  }
  return count;
}

TEST_F(Terminal, DestroyingTheSandboxEndsItAndLeavesNoDescriptor) {
  const int before = TerminalDescriptors();
  Sandbox sandbox = MakeSandbox();
  const Execution running =
      Must(sandbox.StartShell("trap '' HUP TERM; echo ready; sleep 100", Typing()));
  ASSERT_TRUE(AwaitOutput(running, "ready\r\n"));
  EXPECT_GT(TerminalDescriptors(), before);
  Must(sandbox.Destroy());
  EXPECT_THAT(Must(running.Wait()), EndedBy(Cause::kCancelled));
  EXPECT_EQ(TerminalDescriptors(), before);
}

/// All that this process may still open.
std::vector<int> UseUpDescriptors() {
  rlimit few{.rlim_cur = 256, .rlim_max = 256};
  (void)::setrlimit(RLIMIT_NOFILE, &few);
  std::vector<int> used;
  for (int fd = 0; (fd = ::fcntl(0, F_DUPFD_CLOEXEC, 0)) >= 0;) used.push_back(fd);
  return used;
}

// Two for the socket, of which one is free again when the terminal's two ends come. What the engine
// makes ready for the next execution may take one of them: so one more is freed until it starts.
TEST(TerminalWithoutDescriptors, IsNeverASuccess) {
  InForkedProcess([] {
    const TempDir root;
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    EXPECT_TRUE(ExecShell(sandbox, "true", OnTerminal()).ok());
    std::vector<int> used = UseUpDescriptors();
    auto running = sandbox.StartShell("sleep 100", OnTerminal());
    while (!running && !used.empty()) {
      EXPECT_EQ(running.error().sys_errno, EMFILE) << running.error().message;
      (void)::close(used.back());
      used.pop_back();
      running = sandbox.StartShell("sleep 100", OnTerminal());
    }
    ASSERT_THAT(running, Succeeds());
    const auto result = running->WaitFor(Millis(10'000));
    for (const int fd : used) (void)::close(fd);
    ASSERT_TRUE(result);
    EXPECT_THAT(*result, EndedBy(Cause::kInternal));
    EXPECT_EQ(result->termination.stage, "read_output");
    EXPECT_EQ(result->termination.sys_errno, EMFILE);
    EXPECT_TRUE(ExecShell(sandbox, "true", OnTerminal()).ok());
  });
}

// ---- limits

TEST_F(Terminal, LimitsHoldFromTheFirstExecutionOn) {
  Sandbox sandbox = MakeSandbox({.memory = 64_MiB});
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Exec(sandbox, {"./probe", "touch", "40"}, OnTerminal()), ExitedWith(0, "OK\r\n"));
    EXPECT_THAT(Exec(sandbox, {"./probe", "touch-and-stay", "400"}, OnTerminal()),
                EndedBy(Cause::kMemory));
  }
}

TEST_F(Terminal, LimitsHoldForSeveralAtOnce) {
  Sandbox sandbox = MakeSandbox({.cpu_time_limit = Millis(200)});
  std::vector<Execution> running;
  for (int i = 0; i < 3; ++i) {
    running.push_back(Must(sandbox.StartShell("while :; do :; done", OnTerminal())));
  }
  for (const Execution& one : running) {
    EXPECT_THAT(Must(one.Wait()), EndedBy(Cause::kCpuTime));
  }
}

// ---- whose it is

TEST_F(Terminal, SeveralOfOneSandboxAreApart) {
  Sandbox sandbox = MakeSandbox();
  const Execution first = Must(sandbox.StartShell("tty; read x; echo $x", Typing()));
  ASSERT_TRUE(AwaitOutput(first, "/dev/pts/0\r\n"));
  EXPECT_THAT(ExecShell(sandbox, "tty", OnTerminal()), ExitedWith(0, "/dev/pts/1\r\n"));
  Type(first, "still\n");
  EXPECT_THAT(Must(first.Wait()), ExitedWith(0, "/dev/pts/0\r\nstill\r\nstill\r\n"));
}

TEST_F(Terminal, OthersAreOutOfReach) {
  Sandbox other = MakeSandbox();
  const Execution elsewhere = Must(other.StartShell("tty; read x", Typing()));
  ASSERT_TRUE(AwaitOutput(elsewhere, "/dev/pts/0\r\n"));
  const int of_host = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(of_host, 0);
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(ExecShell(sandbox, "ls /dev/pts"), ExitedWith(0, "ptmx\n"));
  EXPECT_THAT(ExecShell(sandbox, "ls -C /dev/pts", OnTerminal()), ExitedWith(0, "0  ptmx\r\n"));
  (void)::close(of_host);
  EXPECT_THAT(ExecShell(sandbox, "echo mine > /dev/pts/0", OnTerminal()),
              ExitedWith(0, "mine\r\n"));
  EXPECT_EQ(elsewhere.out().Text(), "/dev/pts/0\r\n");
}

TEST_F(Terminal, NothingCanBeTypedFromInside) {
  Sandbox sandbox = MakeSandbox();
  const ExecResult result = Exec(sandbox,
                                 {"python3", "-c",
                                  "import fcntl, termios\n"
                                  "fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8))\n"
                                  "try: fcntl.ioctl(0, termios.TIOCSTI, b'x')\n"
                                  "except PermissionError: print('refused')"},
                                 OnTerminal());
  EXPECT_THAT(result, ExitedWith(0, "refused\r\n"));
}

TEST(TerminalWithoutNamespaces, IsRefused) {
  PALMSHED_SKIP_UNLESS(HasLandlockScopes(), "Landlock has no scopes here (ABI 6)");
  OnFilteredRung([] {
    Engine engine = Must(Engine::Create());
    EXPECT_FALSE(Must(engine.GetCapabilities("native", true)).tty);
    Sandbox sandbox = Must(engine.CreateSandbox());
    EXPECT_TRUE(ExecShell(sandbox, "true").ok());
    const auto refused = sandbox.StartShell("true", OnTerminal());
    ASSERT_THAT(refused, FailsWith(ErrorCode::kUnsupported));
    EXPECT_EQ(refused.error().field, "tty");
    EXPECT_THAT(refused.error().message, HasSubstr("/dev/pts"));
    EXPECT_NE(refused.error().remedy, "");
  });
}

}  // namespace
}  // namespace palmshed::tests
