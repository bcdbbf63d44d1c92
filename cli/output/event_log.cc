#include "cli/output/event_log.h"

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <string_view>

#include "cli/output/note.h"
#include "palmshed/events.h"

namespace palmshed::cli {
namespace {

/// ISO 8601 with milliseconds.
std::string FormatTimestamp(std::chrono::system_clock::time_point time) {
  const auto millis =
      std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  const std::time_t seconds = millis / 1000;
  std::tm utc{};
  if (::gmtime_r(&seconds, &utc) == nullptr) return "unknown";
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                     millis % 1000);
}

bool CanWriteNow() {
  pollfd wait{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&wait, 1, 0) == 1 && (wait.revents & POLLOUT) != 0;
}

}  // namespace

std::string FormatEvent(const Event& event) {
  std::string line = fmt::format("event {} time={}", event.name, FormatTimestamp(event.time));
  if (!event.sandbox.empty()) line += " sandbox=" + event.sandbox;
  if (!event.execution.empty()) line += " execution=" + event.execution;
  for (const auto& [key, value] : event.fields) line += fmt::format(" {}={}", key, value);
  return line;
}

std::function<void(const Event&)> EventObserver() {
  const char* level = std::getenv("SANDBOX_LOG");
  if (level == nullptr || std::string_view(level) != "debug") return {};
  return [dropped = 0](const Event& event) mutable {
    if (!CanWriteNow()) {
      ++dropped;
      return;
    }
    std::string line = FormatEvent(event);
    if (dropped > 0) line += fmt::format(" dropped_before={}", dropped);
    dropped = 0;
    Note(line);
  };
}

}  // namespace palmshed::cli
