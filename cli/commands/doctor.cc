#include "cli/commands/doctor.h"

#include <expected>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/format_option.h"
#include "cli/commands/verb.h"
#include "cli/output/capability_table.h"
#include "cli/output/event_log.h"
#include "cli/output/exit_code.h"
#include "cli/output/note.h"
#include "palmshed/capabilities.h"
#include "palmshed/engine.h"
#include "palmshed/error.h"
#include "palmshed/json.h"

namespace palmshed::cli {
namespace {

Result<Capabilities> TestHost() {
  auto engine = Engine::Create({.on_event = EventObserver()});
  if (!engine) return std::unexpected(std::move(engine.error()));
  return engine->GetCapabilities("native", true);
}

ExitCode Examine(bool json) {
  const auto capabilities = TestHost();
  if (!capabilities) {
    Note("cannot test this host: " + Describe(capabilities.error()));
    return ExitCode::kFailed;
  }
  if (!Print(json ? ToJson(*capabilities) + "\n" : FormatCapabilities(*capabilities))) {
    return ExitCode::kFailed;
  }
  return IsolationWorks(*capabilities) ? ExitCode::kOk : ExitCode::kUnhealthy;
}

}  // namespace

Action DeclareDoctor(CLI::App& app) {
  // Shared with the option, which writes into it while the arguments are parsed.
  const auto format = std::make_shared<std::string>();
  AddFormatOption(app, *format);
  return [format](const std::vector<std::string>&) { return Examine(*format == "json"); };
}

}  // namespace palmshed::cli
