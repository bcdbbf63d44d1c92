// What help, manual page, docs/cli and completions are made from.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/verb.h"

namespace palmshed::cli {

/// What a shell offers for a value.
enum class ValueKind : unsigned char {
  kNone,    ///< A flag.
  kText,    ///< Nothing can be offered.
  kFile,    ///< A path of this machine.
  kChoice,  ///< One of OptionEntry::choices.
};

/// One option.
struct OptionEntry {
  std::vector<std::string> names{};  ///< With their dashes, short before long.
  std::string value{};               ///< Its value's name; empty for a flag.
  ValueKind kind{};
  std::vector<std::string> choices{};
  std::string help{};
  std::string group{};

  /// E.g. "-m, --memory SIZE".
  std::string Heading() const;
};

/// The options of a verb, in the order of their declaration; --help comes last.
std::vector<OptionEntry> OptionsOf(const Verb& verb);
/// Their groups, each once, in the same order.
std::vector<std::string> GroupsOf(const std::vector<OptionEntry>& options);

/// The operands' fixed choices: those of a verb with operands "a|b", the verbs' names for help.
std::vector<std::string> OperandChoices(const Verb& verb);

/// E.g. "palmshed run [OPTION...] [--] PROGRAM [ARGUMENT...]".
std::string UsageOf(const Verb& verb);

/// One line of a table of codes or variables.
struct Definition {
  std::string_view term{};
  std::string_view meaning{};
};

std::span<const Definition> ExitCodeTable();
std::span<const Definition> EnvironmentTable();
/// What palmshed is, in a paragraph.
std::string_view Overview();

/// The paragraphs of a description.
std::vector<std::string_view> Paragraphs(std::string_view text);

}  // namespace palmshed::cli
