#include "cli/output/note.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace palmshed::cli {
namespace {

TEST(OneLine, LeavesNoWayToForgeALine) {
  EXPECT_EQ(OneLine("a\nb\x1b[2Kc\x7f"), "a?b?[2Kc?");
  EXPECT_EQ(OneLine("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
}

TEST(Describe, GivesMessageErrnoAndRemedy) {
  EXPECT_EQ(Describe({.message = "open x", .remedy = "do y", .sys_errno = ENOENT}),
            "open x (ENOENT); do y");
  EXPECT_EQ(Describe({.message = "plain"}), "plain");
}

TEST(Describe, NamesTheFlagThatStandsForAField) {
  EXPECT_EQ(
      Describe({.message = "pids cannot be enforced", .field = "pids", .remedy = "Leave it."}),
      "--pids-limit: pids cannot be enforced. Leave it.");
  EXPECT_EQ(Describe({.message = "is no path", .field = "mounts[0].source"}),
            "--volume: is no path");
  EXPECT_EQ(Describe({.message = "must name a program", .field = "args[0]"}),
            "must name a program");
}

TEST(Describe, DoesNotNameAnErrnoTwice) {
  EXPECT_EQ(Describe({.message = "open x: " + NameErrno(EACCES), .sys_errno = EACCES}),
            "open x: Permission denied (EACCES)");
}

}  // namespace
}  // namespace palmshed::cli
