#include "cli/output/outcome.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
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
  EXPECT_EQ(
      Text({.termination = {.cause = Cause::kMemory, .limit = 64U << 20, .observed = 65U << 20}}),
      "killed: it used 65.0 MiB of memory and the limit is 64.0 MiB; raise --memory to "
      "allow more");
  EXPECT_EQ(Text({.termination = {.cause = Cause::kPids}}),
            "killed: the limit of processes was reached; raise --pids-limit to allow more");
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

TEST(DescribeOutcome, TellsAMissingInterpreterFromAMissingFile) {
  ExecResult result = NotStarted(ENOENT);
  result.termination.evidence.emplace_back("file_exists", 1);
  EXPECT_TRUE(Text(result).contains("interpreter")) << Text(result);
}

}  // namespace
}  // namespace palmshed::cli
