#include "cli/reference/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "cli/commands/verb.h"
#include "cli/reference/completion.h"
#include "cli/reference/help_text.h"
#include "cli/reference/man_page.h"
#include "cli/reference/markdown.h"

namespace palmshed::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

OptionEntry Find(const char* verb, const std::string& name) {
  for (const OptionEntry& option : OptionsOf(*FindVerb(verb))) {
    if (std::ranges::find(option.names, name) != option.names.end()) return option;
  }
  ADD_FAILURE() << verb << " has no option " << name;
  return {};
}

TEST(OptionsOf, TellsWhatAnOptionTakes) {
  EXPECT_EQ(Find("run", "--quiet").kind, ValueKind::kNone);
  EXPECT_EQ(Find("run", "--timeout").kind, ValueKind::kText);
  EXPECT_EQ(Find("run", "--copy").kind, ValueKind::kFile);
  EXPECT_EQ(Find("run", "--json").kind, ValueKind::kFile);
  EXPECT_THAT(Find("run", "--network").choices, ElementsAre("disabled", "allow", "proxy"));
  EXPECT_EQ(Find("run", "-m").Heading(), "-m, --memory SIZE");
}

TEST(Reference, NamesEveryOptionEverywhere) {
  std::string pages;
  for (const MarkdownFile& page : MarkdownPages()) pages += page.text;
  const std::string man = ManPage();
  for (const Verb& verb : Verbs()) {
    for (const OptionEntry& option : OptionsOf(verb)) {
      const std::string& name = option.names.back();
      EXPECT_FALSE(option.help.empty()) << name;
      EXPECT_THAT(HelpText(verb), HasSubstr(name));
      EXPECT_THAT(pages, HasSubstr(name));
      EXPECT_THAT(BashCompletion(), HasSubstr(name));
      EXPECT_THAT(ZshCompletion(), HasSubstr(name));
      EXPECT_THAT(FishCompletion(), HasSubstr(" -l " + name.substr(2)));
    }
    EXPECT_THAT(HelpText(), HasSubstr(verb.summary));
    EXPECT_THAT(man, HasSubstr(std::string("palmshed ").append(verb.name)));
  }
}

TEST(Reference, GivesTheExitCodesInHelpManualAndPages) {
  const std::string help = HelpText(*FindVerb("run"));
  const std::string man = ManPage();
  for (const Definition& code : ExitCodeTable()) {
    EXPECT_THAT(help, HasSubstr("\n  " + std::string(code.term) + " "));
    EXPECT_THAT(man, HasSubstr("\\fB" + std::string(code.term) + "\\fR"));
  }
}

TEST(HelpText, FitsATerminal) {
  for (const Verb& verb : Verbs()) {
    const std::string help = HelpText(verb);
    for (std::size_t start = 0; start < help.size();) {
      const std::size_t end = help.find('\n', start);
      EXPECT_LE(end - start, 80U) << help.substr(start, end - start);
      start = end + 1;
    }
  }
}

TEST(Paragraphs, AreSeparatedByEmptyLines) {
  EXPECT_THAT(Paragraphs("one\n\ntwo\n\nthree"), ElementsAre("one", "two", "three"));
  EXPECT_THAT(Paragraphs(""), ElementsAre());
}

}  // namespace
}  // namespace palmshed::cli
