#include "cli/values/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace palmshed::cli {
namespace {

using testing::ElementsAre;
using testing::Pair;

std::optional<std::string> Own(const std::string& name) {
  if (name == "KNOWN") return "from outside";
  return std::nullopt;
}

TEST(ParseEnv, SplitsAtTheFirstEqualsSign) {
  const auto env = ParseEnv({"A=1", "B=x=y", "C="}, Own);
  ASSERT_TRUE(env);
  EXPECT_THAT(*env, ElementsAre(Pair("A", "1"), Pair("B", "x=y"), Pair("C", "")));
}

TEST(ParseEnv, NameAloneTakesOurOwnValueOrIsLeftOut) {
  const auto env = ParseEnv({"KNOWN", "UNKNOWN"}, Own);
  ASSERT_TRUE(env);
  EXPECT_THAT(*env, ElementsAre(Pair("KNOWN", "from outside")));
}

TEST(ParseEnv, RefusesAnEntryWithoutName) {
  for (const char* entry : {"", "=x"}) {
    const auto env = ParseEnv({entry}, Own);
    ASSERT_FALSE(env) << entry;
    EXPECT_EQ(env.error().field, "--env");
  }
}

}  // namespace
}  // namespace palmshed::cli
