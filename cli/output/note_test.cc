#include "cli/output/note.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "palmshed/error.h"

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

TEST(Describe, DoesNotNameAnErrnoTwice) {
  EXPECT_EQ(Describe({.message = "open x: " + NameErrno(EACCES), .sys_errno = EACCES}),
            "open x: Permission denied (EACCES)");
}

}  // namespace
}  // namespace palmshed::cli
