#include "cli/reference/page.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>     // IWYU pragma: keep, for the definitions behind CLI::App
#include <CLI/Formatter.hpp>  // IWYU pragma: keep, as above
#include <CLI/Option.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands/verb.h"

namespace palmshed::cli {
namespace {

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(separator, start), text.size());
    parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

ValueKind KindOf(std::string_view value) {
  if (value.empty()) return ValueKind::kNone;
  if (value.contains('|')) return ValueKind::kChoice;
  return value == "FILE" || value.starts_with("SRC") ? ValueKind::kFile : ValueKind::kText;
}

OptionEntry MakeEntry(const CLI::Option& option) {
  OptionEntry entry{.help = option.get_description(), .group = option.get_group()};
  for (const auto& name : option.get_snames()) entry.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) entry.names.push_back("--" + name);
  if (option.get_items_expected_max() > 0) entry.value = option.get_type_name();
  entry.kind = KindOf(entry.value);
  if (entry.kind == ValueKind::kChoice) entry.choices = Split(entry.value, '|');
  return entry;
}

constexpr std::array kExitCodes{
    Definition{"0", "The program ended with exit code 0."},
    Definition{"n", "The program ended with exit code n."},
    Definition{"124", "The wall-clock limit (--timeout) was reached."},
    Definition{"125",
               "palmshed failed: bad usage, a control that this host cannot enforce, or an "
               "internal failure. Standard error says which."},
    Definition{"126", "The program exists inside the sandbox but cannot be executed."},
    Definition{"127", "The program does not exist inside the sandbox."},
    Definition{"137",
               "Another limit was reached: memory, CPU time, disk or processes. Standard "
               "error says which."},
    Definition{"128 + n",
               "Signal n ended the program. Or palmshed was asked to stop by signal n: "
               "129 for SIGHUP, 130 for SIGINT (^C), 143 for SIGTERM; 141 when the "
               "reader of the output went away."},
};

constexpr std::array kEnvironment{
    Definition{"SANDBOX_LOG",
               "Set to 'debug', palmshed reports the engine's events on standard "
               "error, one line each: identifiers and limits, never commands, "
               "variables or output."},
    Definition{"XDG_STATE_HOME",
               "For an ordinary user, workspaces are kept in its directory "
               "palmshed while they exist; for root in /var/lib/palmshed."},
    Definition{"XDG_RUNTIME_DIR",
               "For an ordinary user, what the last self-tests saw is kept for five "
               "minutes in its directory palmshed; for root in /run/palmshed."},
    Definition{"PATH", "Where programs outside /usr are looked for."},
};

}  // namespace

std::string OptionEntry::Heading() const {
  std::string heading;
  for (const auto& name : names) heading += (heading.empty() ? "" : ", ") + name;
  return value.empty() ? heading : heading + " " + value;
}

std::vector<OptionEntry> OptionsOf(const Verb& verb) {
  CLI::App app;
  app.set_help_flag();
  const Action keeps_values_alive = verb.declare(app);
  std::vector<OptionEntry> options;
  for (const CLI::Option* option : std::as_const(app).get_options()) {
    if (!option->get_positional()) options.push_back(MakeEntry(*option));
  }
  options.push_back(
      {.names = {"-h", "--help"}, .help = "Explain this command.", .group = "Output"});
  return options;
}

std::vector<std::string> GroupsOf(const std::vector<OptionEntry>& options) {
  std::vector<std::string> groups;
  for (const OptionEntry& option : options) {
    if (std::ranges::find(groups, option.group) == groups.end()) groups.push_back(option.group);
  }
  return groups;
}

std::vector<std::string> OperandChoices(const Verb& verb) {
  if (verb.operands.contains('|')) return Split(verb.operands, '|');
  std::vector<std::string> names;
  if (verb.operands != "[COMMAND]") return names;
  for (const Verb& other : Verbs()) names.emplace_back(other.name);
  return names;
}

std::string UsageOf(const Verb& verb) {
  std::string usage = "palmshed " + std::string(verb.name) + " [OPTION...]";
  if (!verb.operands.empty()) usage += " " + std::string(verb.operands);
  return usage;
}

std::span<const Definition> ExitCodeTable() { return kExitCodes; }

std::span<const Definition> EnvironmentTable() { return kEnvironment; }

std::string_view Overview() {
  return "palmshed runs programs that nobody has to trust, on this machine, inside limits that the "
         "kernel enforces, and says afterwards exactly what happened.";
}

std::vector<std::string_view> Paragraphs(std::string_view text) {
  std::vector<std::string_view> paragraphs;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find("\n\n"), text.size());
    paragraphs.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return paragraphs;
}

}  // namespace palmshed::cli
