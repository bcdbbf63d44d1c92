// How a program's end is told: exit, signal, a program that cannot start, standard input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <string>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/kernel_test.h"

namespace palmshed::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Endings : public KernelTest {};

// C012 (a), (e), (f)
TEST_F(Endings, ExitCodeAbove128IsNoSignal) {
  Sandbox sandbox = MakeSandbox();
  for (const int code : {0, 1, 127, 137, 143, 255}) {
    const ExecResult run = ExecShell(sandbox, "exit " + std::to_string(code));
    EXPECT_THAT(run, ExitedWith(code, ""));
    EXPECT_EQ(run.status, code == 0 ? Status::kCompleted : Status::kFailed);
    EXPECT_FALSE(run.termination.signal);
    EXPECT_EQ(run.error_code(), "");
  }
  EXPECT_THAT(ExecShell(sandbox, "exit 256"), ExitedWith(0, ""));
}

// C012 (b), (c), (d)
TEST_F(Endings, SignalIsToldApart) {
  Sandbox sandbox = MakeSandbox();
  for (const int signal : {SIGKILL, SIGTERM, SIGSEGV, SIGABRT}) {
    const ExecResult run =
        Exec(sandbox, {"sh", "-c", "kill -" + std::to_string(signal) + " $$; sleep 20"});
    EXPECT_THAT(run, EndedBy(Cause::kSignaled));
    EXPECT_EQ(run.termination.signal, signal);
    EXPECT_EQ(run.exit_code, 128 + signal);
    EXPECT_EQ(run.status, Status::kFailed);
    EXPECT_EQ(run.error_code(), "");
  }
}

// C012 (h)
TEST_F(Endings, TimeoutIsNeitherSignalNorExit) {
  Sandbox sandbox = MakeSandbox();
  const ExecResult run = Exec(sandbox, {"sleep", "60"}, {.timeout = Millis(200)});
  EXPECT_EQ(run.status, Status::kTimedOut);
  EXPECT_TRUE(run.timed_out());
  EXPECT_EQ(run.exit_code, -1);
  EXPECT_THAT(run, EndedBy(Cause::kWallTimeout));
  EXPECT_EQ(run.termination.limit, 200U);
}

// C055
TEST_F(Endings, MissingProgramIsAFailedStart) {
  Sandbox sandbox = MakeSandbox();
  for (const char* program : {"no-such-program", "./no-such-program", "/no/such/program"}) {
    const ExecResult run = Exec(sandbox, {program});
    EXPECT_THAT(run, EndedBy(Cause::kStartupFailed)) << program;
    EXPECT_EQ(run.exit_code, -1);
    EXPECT_EQ(run.termination.stage, "exec");
    EXPECT_EQ(run.termination.sys_errno, ENOENT);
    EXPECT_EQ(run.error_code(), "EXEC_FAILED");
  }
}

// C055
TEST_F(Endings, ProgramThatCannotRunIsAFailedStart) {
  Sandbox sandbox = MakeSandbox();
  Must(sandbox.WriteFile("notexec", "#!/bin/sh\necho no\n", 0644));
  Must(sandbox.WriteFile("nointerp", "#!/no/interpreter\n", 0755));
  Must(sandbox.WriteFile("foreign",
                         std::string("\x7f"
                                     "ELF\x02\x01\x01",
                                     7) +
                             std::string(9, '\0') +
                             std::string("\x02\x00\x16\x00\x01\x00\x00\x00", 8) +
                             std::string(40, '\0'),
                         0755));
  Must(sandbox.MakeDirectory("dir"));
  const std::vector<std::pair<std::string, int>> programs = {
      {"./notexec", EACCES}, {"./dir", EACCES}, {"./nointerp", ENOENT}, {"./foreign", ENOEXEC}};
  for (const auto& [program, error] : programs) {
    const ExecResult run = Exec(sandbox, {program});
    EXPECT_THAT(run, EndedBy(Cause::kStartupFailed)) << program;
    EXPECT_EQ(run.termination.sys_errno, error) << program;
    EXPECT_EQ(run.error_code(), "EXEC_FAILED");
    EXPECT_THAT(run.termination.evidence, Not(IsEmpty())) << program << " exists";
  }
}

// C055
TEST_F(Endings, ShellSpeaksForItself) {
  Sandbox sandbox = MakeSandbox();
  const ExecResult missing = ExecShell(sandbox, "no-such-program");
  EXPECT_THAT(missing, ExitedWith(127, ""));
  EXPECT_THAT(missing.err.bytes, HasSubstr("no-such-program"));
  EXPECT_THAT(ExecShell(sandbox, "mkdir d; ./d"), ExitedWith(126, ""));
}

// C055
TEST_F(Endings, EmptyCommandIsAWrongRequest) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(sandbox.Start({}), FailsWith(ErrorCode::kInvalidOptions));
  EXPECT_THAT(sandbox.StartShell(""), FailsWith(ErrorCode::kInvalidOptions));
  const auto empty = sandbox.Run({""});
  if (empty) {
    EXPECT_THAT(*empty, EndedBy(Cause::kStartupFailed));
  } else {
    EXPECT_EQ(empty.error().code, ErrorCode::kInvalidOptions);
  }
  EXPECT_THAT(sandbox.Start({"echo", std::string("a\0b", 3)}),
              FailsWith(ErrorCode::kInvalidOptions));
}

// C013
TEST_F(Endings, StandardInputIsEmptyUnlessGiven) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(ExecShell(sandbox, "cat; echo done"), ExitedWith(0, "done\n"));
  EXPECT_THAT(ExecShell(sandbox, "read x; echo rc=$?"), ExitedWith(0, "rc=1\n"));
  EXPECT_THAT(ExecShell(sandbox, "cat; echo done", {.stdin_bytes = ""}), ExitedWith(0, "done\n"));
  EXPECT_THAT(ExecShell(sandbox, "cat", {.stdin_bytes = "some"}), ExitedWith(0, "some"));
}

// C057
TEST_F(Endings, LongCommandRunsOrIsRefusedBeforeAnythingStarts) {
  Sandbox sandbox = MakeSandbox();
  const auto command = [](std::size_t size) {
    const std::string tail = "; echo ok";
    return ": " + std::string(size - 2 - tail.size(), 'a') + tail;
  };
  EXPECT_THAT(ExecShell(sandbox, command(131'000)), ExitedWith(0, "ok\n"));
  EXPECT_THAT(ExecShell(sandbox, command(131'071)), ExitedWith(0, "ok\n"));
  for (const std::size_t size : {131'072U, 200'000U, 2'000'000U}) {
    const auto refused = sandbox.StartShell(command(size));
    ASSERT_THAT(refused, FailsWith(ErrorCode::kInvalidOptions)) << size;
    EXPECT_EQ(refused.error().field, "command");
    EXPECT_THAT(refused.error().message, HasSubstr("131071"));
  }
}

// C057
TEST_F(Endings, ManyArgumentsAndLargeEnvironmentsWork) {
  Sandbox sandbox = MakeSandbox();
  std::vector<std::string> many(100'000, "a");
  many.insert(many.begin(), {"sh", "-c", "echo $#", "sh"});
  EXPECT_THAT(Exec(sandbox, many), ExitedWith(0, "100000\n"));
  Env large;
  for (int i = 0; i < 100; ++i)
    large.emplace_back("V" + std::to_string(i), std::string(10'000, 'v'));
  EXPECT_THAT(ExecShell(sandbox, "echo ${#V99}", {.env = large}), ExitedWith(0, "10000\n"));
  // Over the kernel's limit for one string: whatever the answer, it is definite.
  const auto refused = sandbox.Run({"/bin/echo", std::string(200'000, 'a')});
  if (refused) {
    EXPECT_THAT(*refused, EndedBy(Cause::kStartupFailed));
    EXPECT_EQ(refused->termination.sys_errno, E2BIG);
  } else {
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidOptions);
  }
  EXPECT_THAT(ExecShell(sandbox, "echo still"), ExitedWith(0, "still\n"));
}

TEST_F(Endings, WorkingDirectoryIsMadeAndStaysInside) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(ExecShell(sandbox, "pwd", {.work_dir = "a/b"}), ExitedWith(0, "/workspace/a/b\n"));
  EXPECT_EQ(Exec(sandbox, {"../../probe", "read", "../../probe"}, {.work_dir = "a/b"}).exit_code,
            kReached);
  for (const char* outside : {"../x", "/etc", "a/../../x"}) {
    EXPECT_FALSE(sandbox.StartShell("pwd", {.work_dir = outside})) << outside;
  }
}

}  // namespace
}  // namespace palmshed::tests
