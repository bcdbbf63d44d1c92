// The self-test's program inside a sandbox (child/probe.cc): put there, started, and what it
// reports.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "palmshed/error.h"
#include "palmshed/options.h"
#include "palmshed/result.h"
#include "palmshed/units.h"
#include "run/execution.h"
#include "run/sandbox.h"

namespace palmshed::run {

/// How long the self-test waits for a program that ought to end by itself.
inline constexpr Millis kProbePatience{10'000};

/// A number by name: errno by attempt, 0 where it succeeded, or a measurement.
using Reports = std::map<std::string, int, std::less<>>;

Result<void> InstallProbe(SandboxState& sandbox, std::span<const std::byte> probe);

/// `options` gets a timeout where it has none.
Result<std::shared_ptr<ExecutionState>> StartProbe(SandboxState& sandbox,
                                                   std::vector<std::string> arguments,
                                                   ExecOptions options = {});
/// True when it has reported something; false when it ended without, or took too long.
bool AwaitReport(const ExecutionState& execution);
/// The result once it has ended.
ExecResult AwaitProbe(const ExecutionState& execution);

/// Lines of "name number".
Reports ParseReports(std::string_view text);

}  // namespace palmshed::run
