#include "cli/output/exit_code.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

#include "palmshed/result.h"

namespace palmshed::cli {
namespace {

ExecResult Ended(Cause cause, int exit_code = -1) {
  return {.exit_code = exit_code, .termination = {.cause = cause}};
}

ExecResult NotStarted(int sys_errno, bool file_exists = false) {
  ExecResult result = Ended(Cause::kStartupFailed);
  result.termination.stage = "exec";
  result.termination.sys_errno = sys_errno;
  if (file_exists) result.termination.evidence.emplace_back("file_exists", 1);
  return result;
}

int Code(const ExecResult& result, int stop_signal = 0) {
  return static_cast<int>(ForResult(result, stop_signal));
}

TEST(ForResult, PassesTheProgramsOwnEndOn) {
  for (const int code : {0, 1, 42, 124, 127, 137, 255}) {
    EXPECT_EQ(Code(Ended(Cause::kExited, code)), code);
  }
  EXPECT_EQ(Code(Ended(Cause::kSignaled, 128 + SIGSEGV)), 139);
}

TEST(ForResult, TellsLimitsApartFromTheWallClock) {
  EXPECT_EQ(Code(Ended(Cause::kWallTimeout)), 124);
  for (const Cause cause : {Cause::kCpuTime, Cause::kMemory, Cause::kDisk, Cause::kPids}) {
    EXPECT_EQ(Code(Ended(cause)), 137);
  }
}

TEST(ForResult, NamesTheSignalThatCancelledIt) {
  EXPECT_EQ(Code(Ended(Cause::kCancelled), SIGINT), 130);
  EXPECT_EQ(Code(Ended(Cause::kCancelled), SIGTERM), 143);
  EXPECT_EQ(Code(Ended(Cause::kCancelled), SIGHUP), 129);
  EXPECT_EQ(Code(Ended(Cause::kExited, 3), SIGINT), 3) << "it ended before the signal mattered";
}

// C055
TEST(ForResult, TellsAMissingProgramFromOneThatCannotRun) {
  EXPECT_EQ(Code(NotStarted(ENOENT)), 127);
  EXPECT_EQ(Code(NotStarted(ENOENT, true)), 126) << "its interpreter is missing";
  EXPECT_EQ(Code(NotStarted(EACCES)), 126);
  EXPECT_EQ(Code(NotStarted(ENOEXEC)), 126);
}

TEST(ForResult, OurOwnFailuresAre125) {
  ExecResult no_directory = NotStarted(ENOENT);
  no_directory.termination.stage = "chdir";
  EXPECT_EQ(Code(no_directory), 125);
  EXPECT_EQ(Code(Ended(Cause::kBackendLost)), 125);
  EXPECT_EQ(Code(Ended(Cause::kInternal)), 125);
}

}  // namespace
}  // namespace palmshed::cli
