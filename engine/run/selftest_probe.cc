#include "run/selftest_probe.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "palmshed/error.h"
#include "palmshed/options.h"
#include "palmshed/result.h"
#include "run/execution.h"
#include "run/sandbox.h"

namespace palmshed::run {
namespace {

constexpr char kProbe[] = ".palmshed-probe";

}  // namespace

Result<void> InstallProbe(SandboxState& sandbox, std::span<const std::byte> probe) {
  PALMSHED_TRY(const auto files, sandbox.OpenWorkspace());
  return files.WriteFile(kProbe, probe, 0755);
}

Result<std::shared_ptr<ExecutionState>> StartProbe(SandboxState& sandbox,
                                                   std::vector<std::string> arguments,
                                                   ExecOptions options) {
  arguments.insert(arguments.begin(), {std::string("./") + kProbe, "probe"});
  if (!options.timeout) options.timeout = kProbePatience;
  return sandbox.Start({.args = std::move(arguments), .options = std::move(options)});
}

bool AwaitReport(const ExecutionState& execution) {
  std::array<std::byte, 16> buffer{};
  const auto first = execution.output(Stream::kStdout).Read(0, buffer, kProbePatience);
  return first && *first > 0;
}

ExecResult AwaitProbe(const ExecutionState& execution) {
  (void)execution.WaitSettled(std::nullopt);
  return *execution.result();
}

Reports ParseReports(std::string_view text) {
  Reports reports;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) continue;
    reports[std::string(line.substr(0, space))] = std::atoi(line.data() + space + 1);
  }
  return reports;
}

}  // namespace palmshed::run
