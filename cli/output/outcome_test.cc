#include "cli/output/outcome.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string>

#include "palmshed/result.h"
#include "palmshed/units.h"

namespace palmshed::cli {
namespace {

std::string Text(const ExecResult& result, int stop_signal = 0) {
  return DescribeOutcome(result, "prog", stop_signal).text;
}

ExecResult NotStarted(int sys_errno) {
  return {.termination = {.cause = Cause::kStartupFailed, .stage = "exec", .sys_errno = sys_errno}};
}

TEST(DescribeOutcome, SaysNothingAboutAProgramThatExited) {
  EXPECT_EQ(Text({.exit_code = 3, .termination = {.cause = Cause::kExited}}), "");
}

TEST(DescribeOutcome, NamesLimitUseAndRemedy) {
  EXPECT_EQ(Text({.termination = {.cause = Cause::kWallTimeout, .limit = 2000},
                  .duration = Millis(2003)}),
            "killed after 2.003 s: the wall-clock limit of 2 s was reached; raise --timeout to "
            "allow more");
  const struct {
    Cause cause;
    std::uint64_t limit;
    std::uint64_t observed;
    std::string text;
  } cases[] = {
      {Cause::kMemory, 64U << 20, (64U << 20) + 4096 * 25,
       "memory limit of 64 MiB reached (used 64.1 MiB); raise it with -m/--memory"},
      {Cause::kMemory, 512U << 10, 512U << 10,
       "memory limit of 512 KiB reached (used 512 KiB); raise it with -m/--memory"},
      {Cause::kCpuTime, 300, 342,
       "CPU time limit of 300 ms reached (used 342 ms); raise it with --cpu-time"},
      {Cause::kCpuTime, 2000, 2041,
       "CPU time limit of 2 s reached (used 2.041 s); raise it with --cpu-time"},
      {Cause::kDisk, 10U << 20, (10U << 20) + 1,
       "disk limit of 10 MiB reached (used 10.0 MiB); raise it with --disk"},
      {Cause::kDisk, 1000, 1001,
       "disk limit of 1000 bytes reached (used 1001 bytes); raise it with --disk"},
      {Cause::kPids, 32, 32, "process limit of 32 reached (used 32); raise it with --pids-limit"},
  };
  for (const auto& [cause, limit, observed, text] : cases) {
    EXPECT_EQ(Text({.termination = {.cause = cause, .limit = limit, .observed = observed}}), text);
  }
  EXPECT_EQ(Text({.termination = {.cause = Cause::kPids}}),
            "process limit reached; raise it with --pids-limit");
}

// C006, C047: forks that were refused are no end of their own, and must not go unsaid either.
TEST(DescribeRefusals, SaysThatForksWereRefusedWhenTheProgramFailed) {
  ExecResult result{.status = Status::kFailed,
                    .exit_code = 2,
                    .termination = {.cause = Cause::kExited, .evidence = {{"pids_refused", 3}}}};
  EXPECT_EQ(DescribeRefusals(result),
            "the process limit refused 3 new processes, which may be why it failed; raise it with "
            "--pids-limit");
  result.termination.evidence = {{"pids_refused", 1}};
  EXPECT_TRUE(DescribeRefusals(result).contains("refused 1 new process,"));
  result.termination.evidence = {{"pids_refused", 0}};
  EXPECT_EQ(DescribeRefusals(result), "");
  result.termination.evidence = {};
  EXPECT_EQ(DescribeRefusals(result), "");
}

TEST(DescribeRefusals, SaysNothingOfAProgramThatCoped) {
  const Termination coped{.cause = Cause::kExited, .evidence = {{"pids_refused", 3}}};
  EXPECT_EQ(DescribeRefusals({.status = Status::kCompleted, .exit_code = 0, .termination = coped}),
            "");
}

TEST(DescribeRefusals, SaysNothingTwice) {
  const Termination ended{.cause = Cause::kPids, .evidence = {{"pids_refused", 3}}};
  EXPECT_EQ(DescribeRefusals({.status = Status::kFailed, .termination = ended}), "");
}

TEST(DescribeOutcome, NamesSignals) {
  EXPECT_EQ(Text({.termination = {.cause = Cause::kSignaled, .signal = SIGSEGV}}),
            "the program was ended by signal 11 (SIGSEGV)");
  EXPECT_EQ(Text({.termination = {.cause = Cause::kCancelled}}, SIGTERM), "cancelled by SIGTERM");
}

TEST(DescribeOutcome, StaysSilentWhereShellsDo) {
  for (const int signal : {SIGPIPE, SIGINT}) {
    EXPECT_EQ(Text({.termination = {.cause = Cause::kSignaled, .signal = signal}}), "");
  }
}

TEST(DescribeOutcome, NamesTheProgramThatCannotStart) {
  const Outcome missing = DescribeOutcome(NotStarted(ENOENT), "nosuch", 0);
  EXPECT_EQ(missing.text, "cannot start nosuch: not found in PATH (ENOENT)");
  EXPECT_TRUE(missing.is_failure);
  EXPECT_TRUE(DescribeOutcome(NotStarted(ENOENT), "./nosuch", 0).text.contains("--copy"));
  EXPECT_TRUE(DescribeOutcome(NotStarted(EACCES), "./x", 0).text.contains("chmod +x"));
  EXPECT_TRUE(DescribeOutcome(NotStarted(ENOEXEC), "./x", 0).text.contains("#!/bin/sh"));
}

TEST(DescribeOutcome, NamesTheStepOfAFaultOfTheEngine) {
  const ExecResult result{
      .termination = {.cause = Cause::kInternal, .stage = "read_output", .sys_errno = ENOMEM}};
  const Outcome outcome = DescribeOutcome(result, "prog", 0);
  EXPECT_TRUE(outcome.is_failure);
  EXPECT_TRUE(outcome.text.contains("the step 'read_output' failed")) << outcome.text;
}

TEST(DescribeOutcome, TellsAMissingInterpreterFromAMissingFile) {
  ExecResult result = NotStarted(ENOENT);
  result.termination.evidence.emplace_back("file_exists", 1);
  EXPECT_TRUE(Text(result).contains("interpreter")) << Text(result);
}

}  // namespace
}  // namespace palmshed::cli
