#include "cli/reference/markdown.h"

#include <fmt/core.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/verb.h"
#include "cli/reference/page.h"

namespace palmshed::cli {
namespace {

/// A cell of a table: a bar would end it.
std::string Cell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') cell += '\\';
    cell += c;
  }
  return cell;
}

std::string FormatTable(std::string_view term, std::string_view meaning,
                        std::span<const Definition> table) {
  std::string text = fmt::format("| {} | {} |\n| --- | --- |\n", term, meaning);
  for (const Definition& entry : table) {
    text += fmt::format("| `{}` | {} |\n", Cell(entry.term), Cell(entry.meaning));
  }
  return text;
}

std::string FormatOptions(const Verb& verb) {
  const auto options = OptionsOf(verb);
  std::string text = "\n## Options\n";
  for (const std::string& group : GroupsOf(options)) {
    text += fmt::format("\n### {}\n\n| option | meaning |\n| --- | --- |\n", group);
    for (const OptionEntry& option : options) {
      if (option.group != group) continue;
      text += fmt::format("| `{}` | {} |\n", Cell(option.Heading()), Cell(option.help));
    }
  }
  return text;
}

std::string FormatExamples(std::span<const Example> examples) {
  std::string text = examples.empty() ? "" : "\n## Examples\n";
  for (const Example& example : examples) {
    text += fmt::format("\n{}\n\n```sh\n{}\n```\n", example.explanation, example.command);
  }
  return text;
}

std::string FormatVerb(const Verb& verb) {
  std::string text =
      fmt::format("# palmshed {}\n\n{}.\n\n```\n{}\n```\n", verb.name, verb.summary, UsageOf(verb));
  for (const std::string_view paragraph : Paragraphs(verb.description)) {
    text += fmt::format("\n{}\n", paragraph);
  }
  text += FormatOptions(verb);
  text += FormatExamples(verb.examples);
  if (verb.takes_program) {
    text += "\n## Exit codes\n\n" + FormatTable("exit code", "meaning", ExitCodeTable());
  }
  return text;
}

std::string FormatOverview() {
  std::string text = fmt::format("# The command line program\n\n{}\n\n", Overview());
  text += "| command | what it does |\n| --- | --- |\n";
  for (const Verb& verb : Verbs()) {
    text += fmt::format("| [{}]({}.md) | {} |\n", verb.name, verb.name, verb.summary);
  }
  text += "\n## Environment\n\n";
  return text + FormatTable("variable", "meaning", EnvironmentTable());
}

}  // namespace

std::vector<MarkdownFile> MarkdownPages() {
  std::vector<MarkdownFile> pages{{.name = "README.md", .text = FormatOverview()}};
  for (const Verb& verb : Verbs()) {
    pages.push_back({.name = std::string(verb.name) + ".md", .text = FormatVerb(verb)});
  }
  return pages;
}

}  // namespace palmshed::cli
