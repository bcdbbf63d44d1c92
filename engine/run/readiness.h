// Waiting until a program is ready: for a text in its output, or for somebody who listens.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <string_view>

#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/units.h"
#include "run/output.h"

namespace palmshed::run {

/// Longest text that can be waited for.
inline constexpr std::size_t kMaxAwaitedText = 64U << 10;

/// As Execution::WaitForOutput.
Result<std::uint64_t> AwaitText(const Output& output, std::string_view text, std::uint64_t cursor,
                                Millis limit, const std::stop_token& stop);

/// What a wait for a port goes by.
struct PortWait {
  std::uint16_t port = 0;
  Millis limit{};
  std::stop_token stop{};
  /// Waits that long at most, and returns why nobody can be expected to listen any more, if so.
  std::function<Result<void>(Millis)> pause{};
};

/// Until one of the tables (BackendSandbox::OpenTcpTables) has a listener. Errors: as
/// Sandbox::WaitForPort, and what `pause` returns.
Result<void> AwaitListener(std::span<const UniqueFd> tables, const PortWait& wait);

/// True when a line of /proc/net/tcp or tcp6 is about a socket that listens on `port`.
bool IsListener(std::string_view line, std::uint16_t port);

/// CONFLICT: in a callback of the engine, which a wait would block.
Error WaitInCallback(std::string_view call);

}  // namespace palmshed::run
