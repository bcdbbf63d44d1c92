#include "cli/reference/help_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "cli/commands/verb.h"
#include "cli/reference/page.h"

namespace palmshed::cli {
namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kOptionIndent = 26;

/// `text` broken between words, every line but the first indented.
std::string Wrap(std::string_view text, std::size_t indent) {
  std::string wrapped;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (column > indent && column + 1 + word.size() > kColumns) {
      wrapped += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      wrapped += ' ';
      ++column;
    }
    wrapped += word;
    column += word.size();
  }
  return wrapped;
}

/// "  term      meaning", the meaning on a line of its own where the term is too long.
std::string FormatEntry(std::string_view term, std::string_view meaning, std::size_t indent) {
  std::string text = fmt::format("  {}", term);
  text += text.size() + 2 > indent ? "\n" + std::string(indent, ' ')
                                   : std::string(indent - text.size(), ' ');
  return text + Wrap(meaning, indent) + "\n";
}

std::string FormatOptions(const Verb& verb) {
  const auto options = OptionsOf(verb);
  std::string text;
  for (const std::string& group : GroupsOf(options)) {
    text += fmt::format("\n{}:\n", group);
    for (const OptionEntry& option : options) {
      if (option.group == group) text += FormatEntry(option.Heading(), option.help, kOptionIndent);
    }
  }
  return text;
}

std::string FormatExamples(std::span<const Example> examples) {
  if (examples.empty()) return {};
  std::string text = "\nExamples:\n";
  for (const Example& example : examples) {
    text += fmt::format("  {}\n      {}\n", example.command, Wrap(example.explanation, 6));
  }
  return text;
}

std::string FormatTable(std::string_view title, std::span<const Definition> table,
                        std::size_t indent) {
  std::string text = fmt::format("\n{}:\n", title);
  for (const Definition& entry : table) text += FormatEntry(entry.term, entry.meaning, indent);
  return text;
}

}  // namespace

std::string HelpText() {
  std::string text =
      fmt::format("{}\n\nUsage: palmshed COMMAND [OPTION...]\n\nCommands:\n", Wrap(Overview(), 0));
  for (const Verb& verb : Verbs()) text += FormatEntry(verb.name, verb.summary, 14);
  text += FormatTable("Environment", EnvironmentTable(), 18);
  return text + "\n'palmshed help COMMAND' explains a command, with examples.\n";
}

std::string HelpText(const Verb& verb) {
  std::string text = fmt::format("{}.\n\nUsage: {}\n", verb.summary, UsageOf(verb));
  for (const std::string_view paragraph : Paragraphs(verb.description)) {
    text += fmt::format("\n{}\n", Wrap(paragraph, 0));
  }
  text += FormatOptions(verb);
  text += FormatExamples(verb.examples);
  if (verb.takes_program) text += FormatTable("Exit codes", ExitCodeTable(), 12);
  return text;
}

}  // namespace palmshed::cli
