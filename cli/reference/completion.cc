#include "cli/reference/completion.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands/verb.h"
#include "cli/reference/page.h"

namespace palmshed::cli {
namespace {

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += separator;
    text += part;
  }
  return text;
}

std::string Replace(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string FirstClause(const std::string& help) {
  return help.substr(0, std::min({help.find(". "), help.find("; "), help.find(": "),
                                  help.size() - (help.ends_with('.') ? 1 : 0)}));
}

std::vector<std::string> VerbNames() {
  std::vector<std::string> names;
  for (const Verb& verb : Verbs()) names.emplace_back(verb.name);
  return names;
}

std::vector<std::string> NamesOf(const std::vector<OptionEntry>& options) {
  std::vector<std::string> names;
  for (const OptionEntry& option : options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

/// The names of the options with a value, as a pattern of `case`.
std::string ValuePattern(const std::vector<OptionEntry>& options) {
  std::vector<std::string> names;
  for (const OptionEntry& option : options) {
    if (option.kind != ValueKind::kNone) {
      names.insert(names.end(), option.names.begin(), option.names.end());
    }
  }
  return Join(names, " | ");
}

// ---- bash

constexpr std::string_view kBashHead = R"(# bash completion of palmshed.

_palmshed_words() { COMPREPLY=($(compgen -W "$1" -- "$cur")); }
_palmshed_files() { compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$cur")); }

)";

/// Moves `i` to the word where the program begins, and completes from there on.
constexpr std::string_view kBashProgram = R"(      local i=2
      while ((i < COMP_CWORD)); do
        case ${{COMP_WORDS[i]}} in
          --) break ;;
          {}) ((i += 2)) ;;
          -*) ((i += 1)) ;;
          *) break ;;
        esac
      done
      if ((i < COMP_CWORD)); then
        if [[ ${{COMP_WORDS[i]}} == -- ]] && ((i + 1 == COMP_CWORD)); then
          COMPREPLY=($(compgen -c -- "$cur"))
        else
          _palmshed_files
        fi
        return
      fi
)";

std::string BashValue(const OptionEntry& option) {
  const std::string names = Join(option.names, " | ");
  switch (option.kind) {
    case ValueKind::kNone:
      return {};
    case ValueKind::kText:
      return fmt::format("        {}) return ;;\n", names);
    case ValueKind::kFile:
      return fmt::format("        {}) _palmshed_files; return ;;\n", names);
    case ValueKind::kChoice:
      return fmt::format("        {}) _palmshed_words '{}'; return ;;\n", names,
                         Join(option.choices, " "));
  }
  return {};
}

std::string BashOperand(const Verb& verb) {
  if (verb.takes_program) return "COMPREPLY=($(compgen -c -- \"$cur\"))";
  return fmt::format("_palmshed_words '{}'", Join(OperandChoices(verb), " "));
}

std::string BashVerb(const Verb& verb) {
  const auto options = OptionsOf(verb);
  const std::string pattern = ValuePattern(options);
  std::string text = fmt::format("    {})\n", verb.name);
  if (verb.takes_program) text += fmt::format(fmt::runtime(kBashProgram), pattern);
  if (!pattern.empty()) {
    text += "      case $prev in\n";
    for (const OptionEntry& option : options) text += BashValue(option);
    text += "      esac\n";
  }
  return text + fmt::format(
                    "      if [[ $cur == -* ]]; then\n        _palmshed_words '{}'\n"
                    "      else\n        {}\n      fi\n      ;;\n",
                    Join(NamesOf(options), " "), BashOperand(verb));
}

// ---- zsh

std::string ZshQuote(std::string text) { return Replace(std::move(text), "'", "'\\''"); }

std::string ZshDescription(const std::string& help) {
  return ZshQuote(Replace(Replace(FirstClause(help), "[", "("), "]", ")"));
}

std::string ZshValue(const OptionEntry& option) {
  switch (option.kind) {
    case ValueKind::kNone:
      return {};
    case ValueKind::kText:
      return ":value: ";
    case ValueKind::kFile:
      return ":file:_files";
    case ValueKind::kChoice:
      return fmt::format(":value:({})", Join(option.choices, " "));
  }
  return {};
}

std::string ZshOperand(const Verb& verb) {
  if (verb.takes_program) {
    return " \\\n        '(-)1:program:_command_names -e' '*::argument:_normal'";
  }
  const auto choices = OperandChoices(verb);
  return choices.empty() ? std::string()
                         : fmt::format(" \\\n        '1:operand:({})'", Join(choices, " "));
}

std::string ZshVerb(const Verb& verb) {
  std::string text = fmt::format("    {})\n      _arguments -s -S", verb.name);
  for (const OptionEntry& option : OptionsOf(verb)) {
    for (const std::string& name : option.names) {
      text += fmt::format(" \\\n        '*{}[{}]{}'", name, ZshDescription(option.help),
                          ZshValue(option));
    }
  }
  return text + ZshOperand(verb) + "\n      ;;\n";
}

// ---- fish

std::string FishQuote(std::string text) {
  return "'" + Replace(Replace(std::move(text), "\\", "\\\\"), "'", "\\'") + "'";
}

std::string FishOption(const Verb& verb, const OptionEntry& option) {
  std::string text =
      fmt::format("complete -c palmshed -n '__fish_seen_subcommand_from {}'", verb.name);
  for (const std::string& name : option.names) {
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (option.kind == ValueKind::kText) text += " -x";
  if (option.kind == ValueKind::kFile) text += " -r -F";
  if (option.kind == ValueKind::kChoice) {
    text += " -x -a " + FishQuote(Join(option.choices, " "));
  }
  return text + " -d " + FishQuote(FirstClause(option.help)) + "\n";
}

std::string FishVerb(const Verb& verb) {
  std::string text = fmt::format("complete -c palmshed -n __fish_use_subcommand -f -a {} -d {}\n",
                                 verb.name, FishQuote(std::string(verb.summary)));
  const auto choices = OperandChoices(verb);
  if (!verb.takes_program) {
    text += fmt::format("complete -c palmshed -n '__fish_seen_subcommand_from {}' -f", verb.name);
    text += choices.empty() ? "\n" : " -a " + FishQuote(Join(choices, " ")) + "\n";
  }
  for (const OptionEntry& option : OptionsOf(verb)) text += FishOption(verb, option);
  return text;
}

}  // namespace

std::string BashCompletion() {
  std::string text(kBashHead);
  text += fmt::format(
      "_palmshed() {{\n"
      "  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}}\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    _palmshed_words '{} --help --version'\n"
      "    return\n"
      "  fi\n"
      "  case ${{COMP_WORDS[1]}} in\n",
      Join(VerbNames(), " "));
  for (const Verb& verb : Verbs()) text += BashVerb(verb);
  return text + "  esac\n}\n\ncomplete -F _palmshed palmshed\n";
}

std::string ZshCompletion() {
  std::string text = "#compdef palmshed\n\n_palmshed() {\n  local -a commands=(\n";
  for (const Verb& verb : Verbs()) {
    text += fmt::format("    '{}:{}'\n", verb.name, ZshQuote(std::string(verb.summary)));
  }
  text +=
      "  )\n"
      "  if ((CURRENT == 2)); then\n"
      "    _describe -t commands command commands\n"
      "    return\n"
      "  fi\n"
      "  local verb=${words[2]}\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case $verb in\n";
  for (const Verb& verb : Verbs()) text += ZshVerb(verb);
  // Sourced it only defines; autoloaded by compinit it also completes this very line.
  return text +
         "  esac\n}\n\n"
         "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n"
         "  _palmshed \"$@\"\n"
         "else\n"
         "  compdef _palmshed palmshed\n"
         "fi\n";
}

std::string FishCompletion() {
  std::string text = "# fish completion of palmshed.\n";
  for (const Verb& verb : Verbs()) text += FishVerb(verb);
  return text;
}

}  // namespace palmshed::cli
