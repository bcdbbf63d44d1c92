#include "cli/commands/program_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>     // IWYU pragma: keep, for the definitions behind CLI::App
#include <CLI/Formatter.hpp>  // IWYU pragma: keep, as above
#include <string>
#include <utility>
#include <vector>

namespace palmshed::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

ProgramArguments Split(std::vector<std::string> arguments) {
  CLI::App app;
  app.set_help_flag();
  bool flag = false;
  std::vector<std::string> values;
  app.add_flag("-i,--interactive", flag);
  app.add_option("-e,--env", values)->allow_extra_args(false);
  return SplitProgram(app, std::move(arguments));
}

TEST(SplitProgram, TheMarkEndsTheOptions) {
  const auto split = Split({"-i", "-e", "A=1", "--", "prog", "-e", "--", "x"});
  EXPECT_THAT(split.options, ElementsAre("-i", "-e", "A=1"));
  EXPECT_THAT(split.program, ElementsAre("prog", "-e", "--", "x"));
}

TEST(SplitProgram, TheFirstOtherArgumentIsTheProgram) {
  const auto split = Split({"--env", "A=1", "python3", "-c", "[x]"});
  EXPECT_THAT(split.options, ElementsAre("--env", "A=1"));
  EXPECT_THAT(split.program, ElementsAre("python3", "-c", "[x]"));
}

TEST(SplitProgram, KnowsValuesInTheSameArgument) {
  EXPECT_THAT(Split({"--env=A=1", "prog"}).program, ElementsAre("prog"));
  EXPECT_THAT(Split({"-eA=1", "prog"}).program, ElementsAre("prog"));
  EXPECT_THAT(Split({"-ie", "A=1", "prog"}).program, ElementsAre("prog"));
  EXPECT_THAT(Split({"-ieA=1", "prog"}).program, ElementsAre("prog"));
}

TEST(SplitProgram, KeepsArgumentsByteForByte) {
  EXPECT_THAT(Split({"--", "prog", "", "[a,b]", "%%", "{}", "a\nb"}).program,
              ElementsAre("prog", "", "[a,b]", "%%", "{}", "a\nb"));
  EXPECT_THAT(Split({""}).program, ElementsAre(""));
}

TEST(SplitProgram, AnUnknownOptionIsLeftToTheParser) {
  const auto split = Split({"--bad", "prog"});
  EXPECT_THAT(split.options, ElementsAre("--bad"));
  EXPECT_THAT(split.program, ElementsAre("prog"));
}

TEST(SplitProgram, AValueMayBeMissing) {
  EXPECT_THAT(Split({"-e"}).options, ElementsAre("-e"));
  EXPECT_THAT(Split({}).program, IsEmpty());
}

}  // namespace
}  // namespace palmshed::cli
