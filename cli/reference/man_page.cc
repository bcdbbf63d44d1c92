#include "cli/reference/man_page.h"

#include <fmt/core.h>

#include <span>
#include <string>
#include <string_view>

#include "cli/commands/verb.h"
#include "cli/reference/page.h"
#include "palmshed/version.h"

namespace palmshed::cli {
namespace {

/// `text` for the body of a man(7) page: nothing in it is taken for markup.
std::string Escape(std::string_view text) {
  std::string escaped;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) escaped += "\\&";
    line_start = c == '\n';
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if (c == '\'') {
      escaped += "\\(aq";
    } else if (c == '"') {
      escaped += "\\(dq";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string Tagged(std::string_view term, std::string_view text) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}\n", Escape(term), Escape(text));
}

std::string FormatExamples(std::span<const Example> examples) {
  std::string text;
  for (const Example& example : examples) {
    text += fmt::format(".TP\n.nf\n\\fB{}\\fR\n.fi\n{}\n", Escape(example.command),
                        Escape(example.explanation));
  }
  return text;
}

std::string FormatVerb(const Verb& verb) {
  std::string text = fmt::format(".SH COMMAND {}\n\\fB{}\\fR\n.PP\n{}.\n", Escape(verb.name),
                                 Escape(UsageOf(verb)), Escape(verb.summary));
  for (const std::string_view paragraph : Paragraphs(verb.description)) {
    text += fmt::format(".PP\n{}\n", Escape(paragraph));
  }
  const auto options = OptionsOf(verb);
  for (const std::string& group : GroupsOf(options)) {
    text += fmt::format(".SS {}\n", Escape(group));
    for (const OptionEntry& option : options) {
      if (option.group == group) text += Tagged(option.Heading(), option.help);
    }
  }
  if (!verb.examples.empty()) text += ".SS Examples\n" + FormatExamples(verb.examples);
  return text;
}

std::string FormatTable(std::string_view title, std::span<const Definition> table) {
  std::string text = fmt::format(".SH {}\n", title);
  for (const Definition& entry : table) text += Tagged(entry.term, entry.meaning);
  return text;
}

}  // namespace

std::string ManPage() {
  std::string text = fmt::format(
      ".TH PALMSHED 1 \"\" \"palmshed {}\" \"User Commands\"\n"
      ".SH NAME\npalmshed \\- run programs that nobody has to trust\n"
      ".SH SYNOPSIS\n",
      kVersion);
  for (const Verb& verb : Verbs()) text += fmt::format(".B {}\n.br\n", Escape(UsageOf(verb)));
  text += fmt::format(".SH DESCRIPTION\n{}\n", Escape(Overview()));
  for (const Verb& verb : Verbs()) text += FormatVerb(verb);
  text += FormatTable("EXIT STATUS", ExitCodeTable());
  text += FormatTable("ENVIRONMENT", EnvironmentTable());
  return text;
}

}  // namespace palmshed::cli
