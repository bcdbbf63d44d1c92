#include "run/readiness.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "base/loop.h"
#include "base/result.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "base/waiting.h"
#include "palmshed/error.h"
#include "palmshed/result.h"
#include "palmshed/units.h"
#include "run/execution.h"
#include "run/output.h"
#include "run/sandbox.h"

namespace palmshed::run {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kReadChunk = 64U << 10;
constexpr Millis kFirstPause{1};
constexpr Millis kLongestPause{50};
/// Listeners come first in the table (proc(5)), and connections, of which a program may have any
/// number, after them.
constexpr std::size_t kMostOfATable = 1U << 20;
constexpr std::string_view kListens = "0A";

Error Late(std::string_view what, Millis limit) {
  return {.code = ErrorCode::kOverloaded,
          .message = std::string(what).append(" within ") + std::to_string(limit.count()) + " ms",
          .op = "wait"};
}

Error Conflict(std::string message) {
  return {.code = ErrorCode::kConflict, .message = std::move(message), .op = "wait"};
}

Millis Left(SteadyClock::time_point deadline) {
  const auto left = std::chrono::ceil<Millis>(deadline - SteadyClock::now());
  return std::max(left, Millis(0));
}

/// Takes the next word off the front.
std::string_view TakeWord(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

/// One look at one table.
Result<bool> HasListener(BorrowedFd table, std::uint16_t port) {
  std::string text(kReadChunk, '\0');
  std::size_t held = 0;  // Of a line whose end is still to come.
  for (std::size_t at = 0; at < kMostOfATable;) {
    const auto room = std::as_writable_bytes(std::span(text)).subspan(held);
    PALMSHED_TRY(const std::size_t size, sys::Pread(table, room, static_cast<std::int64_t>(at)));
    if (size == 0) return false;
    at += size;
    std::string_view rest(text.data(), held + size);
    for (std::size_t end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
      if (IsListener(rest.substr(0, end), port)) return true;
      rest.remove_prefix(end + 1);
    }
    if (rest.size() == text.size()) return false;  // No line is as long as that.
    held = rest.size();
    std::copy(rest.begin(), rest.end(), text.begin());
  }
  return false;
}

Result<bool> AnyListener(std::span<const UniqueFd> tables, std::uint16_t port) {
  for (const UniqueFd& table : tables) {
    PALMSHED_TRY(const bool listens, HasListener(table.get(), port));
    if (listens) return true;
  }
  return false;
}

Result<void> CheckPort(std::uint16_t port) {
  if (port != 0) return {};
  return std::unexpected(InvalidOption("port", "must be from 1 to 65535"));
}

}  // namespace

Error WaitInCallback(std::string_view call) {
  return Conflict(std::string(call) +
                  "() was called in a callback of the engine, which it would block");
}

// ---- a text

Result<std::uint64_t> AwaitText(const Output& output, std::string_view text, std::uint64_t cursor,
                                Millis limit, const std::stop_token& stop) {
  if (text.empty() || text.size() > kMaxAwaitedText) {
    return std::unexpected(InvalidOption("text", "must have 1 to 65536 bytes"));
  }
  const auto deadline = SteadyClock::now() + Bounded(limit);
  std::vector<std::byte> chunk(kReadChunk);
  std::string window;  // What was read last and may be the beginning of the text.
  while (true) {
    auto size = output.Read(cursor, chunk, Left(deadline), stop);
    if (!size && size.error().code == ErrorCode::kOverloaded) {
      return std::unexpected(Late("the text did not come", limit));
    }
    if (!size) return std::unexpected(std::move(size.error()));
    if (*size == 0) {
      return std::unexpected(Conflict("the output has ended, and the text was not in it"));
    }
    cursor += *size;
    window.append(reinterpret_cast<const char*>(chunk.data()), *size);
    if (const std::size_t found = window.find(text); found != window.npos) {
      return cursor - (window.size() - found - text.size());
    }
    window.erase(0, window.size() - std::min(window.size(), text.size() - 1));
  }
}

Result<std::uint64_t> ExecutionState::WaitForOutput(Stream stream, std::string_view text,
                                                    Millis limit, std::uint64_t cursor,
                                                    const std::stop_token& stop) const {
  if (OnOwnThread()) return std::unexpected(WaitInCallback("WaitForOutput"));
  return AwaitText(output(stream), text, cursor, limit, stop);
}

// ---- a port

/// `sl local_address rem_address st ...`, the address and the port in hexadecimal (proc(5)).
bool IsListener(std::string_view line, std::uint16_t port) {
  (void)TakeWord(line);
  const std::string_view local = TakeWord(line);
  (void)TakeWord(line);
  if (TakeWord(line) != kListens) return false;
  const std::string_view digits = local.substr(std::min(local.find(':'), local.size() - 1) + 1);
  std::uint16_t number = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size() && number == port;
}

Result<void> AwaitListener(std::span<const UniqueFd> tables, const PortWait& wait) {
  const auto deadline = SteadyClock::now() + Bounded(wait.limit);
  for (Millis pause = kFirstPause;; pause = std::min(pause * 2, kLongestPause)) {
    // Before the look: who listened at the end is not there any more.
    PALMSHED_TRY_VOID(wait.pause(Millis(0)));
    PALMSHED_TRY(const bool listens, AnyListener(tables, wait.port));
    if (listens) return {};
    if (wait.stop.stop_requested()) {
      return std::unexpected(Conflict("the wait was stopped by the caller"));
    }
    const Millis left = Left(deadline);
    if (left == Millis(0)) {
      return std::unexpected(
          Late("nobody listened on port " + std::to_string(wait.port), wait.limit));
    }
    PALMSHED_TRY_VOID(wait.pause(std::min(pause, left)));
  }
}

Result<void> ExecutionState::WaitForPort(std::uint16_t port, Millis limit,
                                         const std::stop_token& stop) const {
  PALMSHED_TRY_VOID(CheckPort(port));
  if (OnOwnThread()) return std::unexpected(WaitInCallback("WaitForPort"));
  const auto ended = [] { return std::unexpected(Conflict("the execution has ended")); };
  std::shared_ptr<backends::BackendSandbox> sandbox;
  {
    const std::lock_guard lock(mu_);
    sandbox = context_.sandbox;
  }
  if (!sandbox) return ended();
  PALMSHED_TRY(const auto tables, sandbox->OpenTcpTables());
  sandbox.reset();
  return AwaitListener(
      tables,
      {.port = port, .limit = limit, .stop = stop, .pause = [&](Millis span) -> Result<void> {
         if (WaitSettled(span)) return ended();
         return {};
       }});
}

Result<void> SandboxState::WaitForPort(std::uint16_t port, Millis limit,
                                       const std::stop_token& stop) const {
  PALMSHED_TRY_VOID(CheckPort(port));
  // The loop must outlive this look.
  const auto engine = context_.engine.lock();
  if (engine && context_.loop->InLoop()) return std::unexpected(WaitInCallback("WaitForPort"));
  PALMSHED_TRY(auto backend, Live());
  PALMSHED_TRY(const auto tables, backend->OpenTcpTables());
  backend.reset();
  return AwaitListener(
      tables,
      {.port = port, .limit = limit, .stop = stop, .pause = [&](Millis span) -> Result<void> {
         {
           std::unique_lock lock(mu_);
           (void)changed_.wait_for(lock, span,
                                   [this] { return !backend_ || destroying_ || lost_; });
         }
         PALMSHED_TRY_VOID(Live());
         return {};
       }});
}

}  // namespace palmshed::run
