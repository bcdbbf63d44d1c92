#include "cli/commands/version.h"

#include <fmt/core.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/commands/format_option.h"
#include "cli/commands/verb.h"
#include "cli/output/exit_code.h"
#include "cli/output/note.h"
#include "palmshed/version.h"

namespace palmshed::cli {

Action DeclareVersion(CLI::App& app) {
  // Shared with the option, which writes into it while the arguments are parsed.
  const auto format = std::make_shared<std::string>();
  AddFormatOption(app, *format);
  return [format](const std::vector<std::string>&) {
    const std::string text =
        *format == "json"
            ? fmt::format("{{\"version\":\"{}\",\"specVersion\":\"{}\"}}\n", kVersion, kSpecVersion)
            : fmt::format("palmshed {} (specification {})\n", kVersion, kSpecVersion);
    return Print(text) ? ExitCode::kOk : ExitCode::kFailed;
  };
}

}  // namespace palmshed::cli
