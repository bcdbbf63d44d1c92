// What the other tests of this folder rest on: that every process of the engine is seen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "faults/course.h"
#include "faults/errors.h"
#include "faults/life.h"
#include "faults/roles.h"
#include "faults/rounds.h"
#include "support/kernel_test.h"

namespace palmshed::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

class Steps : public RoundsTest, public ::testing::WithParamInterface<Life> {};

/// How many there are, for whoever looks at the log.
void Print(const Life& life, const Course& course) {
  std::map<std::string, int> counts;
  for (const Call& call : course.calls) {
    ++counts[std::string(ToString(call.phase)) + "/" + std::string(ToString(call.role))];
  }
  for (const auto& [where, count] : counts) {
    std::cout << life.name << "/" << where << ": " << count << " calls\n";
  }
}

/// Calls that would never be made to fail since nobody has written down what they can answer.
std::set<std::string> Unknown(const Course& course) {
  std::set<std::string> unknown;
  for (const Call& call : course.calls) {
    if (!IsKnown(call.number)) unknown.insert(NameOf(call.number));
  }
  return unknown;
}

TEST_P(Steps, AreThoseOfEveryProcessAndTheProgramsAreHeld) {
  const Life& life = GetParam();
  PALMSHED_SKIP_UNLESS(WantOf(life).empty(), WantOf(life));
  const Course& course = Recorded(life);
  Print(life, course);
  EXPECT_THAT(Unknown(course), IsEmpty());
  const std::vector<std::string> runs = RunsOf(course.report);
  EXPECT_EQ(Judge(course, {.runs = runs}), "") << ::testing::PrintToString(course.report);
  if (life.asks) {
    EXPECT_THAT(runs, IsSupersetOf({"can networkIsolation", "can osFilesystemIsolation"}));
    return;
  }
  if (life.feeds) {
    EXPECT_THAT(runs, ElementsAre("ran typed exited stage= exit=0 out=x\r|got x\r| err=",
                                  "ran fed exited stage= exit=0 out=300000| err="));
    return;
  }
  if (life.files) {
    EXPECT_THAT(runs,
                ElementsAre("ran files of the tree 640 deep file",
                            "ran look exited stage= exit=0 out=of the host of the host of the "
                            "treeread-only| err="));
    return;
  }
  ASSERT_EQ(runs.size(), life.limited ? 4U : 3U);
  if (!life.filtered) {  // Where /proc cannot be seen.
    EXPECT_THAT(runs[0], HasSubstr("NoNewPrivs:\t1|"));
  }
  EXPECT_THAT(runs[0], HasSubstr("|REFUSED|REFUSED|REFUSED|REFUSED|REFUSED|REFUSED|end|"));
  if (life.limited) {
    EXPECT_THAT(runs[1], HasSubstr("started 7 EAGAIN"));
    EXPECT_THAT(runs[3], HasSubstr("ran memory memory"));
  }
  std::set<Role> roles;
  for (const Call& call : course.calls) roles.insert(call.role);
  EXPECT_THAT(roles, IsSupersetOf({Role::kEngine, Role::kInit, Role::kBearer}));
  if (life.launched) {
    EXPECT_THAT(roles, IsSupersetOf({Role::kStage, Role::kLauncher}));
  }
}

std::string NameOfTest(const ::testing::TestParamInfo<Life>& info) {
  return std::string(info.param.name);
}

INSTANTIATE_TEST_SUITE_P(All, Steps, ::testing::ValuesIn(kLives), NameOfTest);

}  // namespace
}  // namespace palmshed::tests
