#include "plan/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "palmshed/options.h"
#include "plan/plan.h"

namespace palmshed::plan {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(Environment, DefaultsComeFromTheOfferAlone) {
  const Offer offer{.backend = "native",
                    .search_path = {"/opt/node/bin", "/usr/bin"},
                    .runtime_env = {{"RUSTUP_HOME", "/opt/rustup"}, {"LANG", "en"}}};
  EXPECT_THAT(DefaultEnv(offer),
              ElementsAre(Pair("PATH", "/opt/node/bin:/usr/bin"), Pair("HOME", "/workspace"),
                          Pair("TMPDIR", "/tmp"), Pair("LANG", "en"), Pair("USER", "sandbox"),
                          Pair("LOGNAME", "sandbox"), Pair("SHELL", "/bin/sh"),
                          Pair("PALMSHED_SANDBOX", "1"), Pair("RUSTUP_HOME", "/opt/rustup")));
}

TEST(Environment, HomeAndTmpAreWhereTheOfferSays) {
  const Offer offer{
      .backend = "native", .workspace = "/state/sbx/workspace", .tmp = "/state/sbx/tmp"};
  const Env env = DefaultEnv(offer);
  EXPECT_EQ(Lookup(env, "HOME"), "/state/sbx/workspace");
  EXPECT_EQ(Lookup(env, "TMPDIR"), "/state/sbx/tmp");
}

TEST(Environment, NoNameIsLeftTwiceAndTheLaterValueWins) {
  EXPECT_THAT(Merge({{"A", "1"}, {"B", "2"}, {"A", "3"}}, {{"C", "4"}, {"B", ""}, {"C", "5"}}),
              ElementsAre(Pair("A", "3"), Pair("B", ""), Pair("C", "5")));
}

TEST(Environment, LookupAndFlattenAgree) {
  const Env env = {{"PATH", "/bin"}, {"EMPTY", ""}, {"EQ", "a=b"}};
  EXPECT_EQ(Lookup(env, "PATH"), "/bin");
  EXPECT_EQ(Lookup(env, "PAT"), "");
  EXPECT_THAT(Flatten(env), ElementsAre("PATH=/bin", "EMPTY=", "EQ=a=b"));
}

}  // namespace
}  // namespace palmshed::plan
