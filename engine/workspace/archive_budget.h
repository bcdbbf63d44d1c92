// How far one call on an archive may go.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "base/waiting.h"
#include "palmshed/error.h"
#include "palmshed/files.h"
#include "palmshed/units.h"

namespace palmshed::workspace {

/// Counts against ArchiveLimits, and keeps the summary.
class ArchiveBudget {
 public:
  explicit ArchiveBudget(const ArchiveLimits& limits)
      : limits_(limits), deadline_(Clock::now() + Bounded(limits.timeout)) {}

  /// One more name.
  Result<void> AddEntry() {
    if (limits_.max_entries != 0 && summary_.entries + summary_.skipped == limits_.max_entries) {
      return Exceeded("maxEntries", std::to_string(limits_.max_entries) + " entries");
    }
    ++summary_.entries;
    return {};
  }
  /// The one that was added last is left out.
  void Skip(std::string path) {
    constexpr std::size_t kMostPaths = 100;
    --summary_.entries;
    ++summary_.skipped;
    if (summary_.skipped_paths.size() < kMostPaths) {
      summary_.skipped_paths.push_back(std::move(path));
    }
  }
  /// So many bytes of content more.
  Result<void> AddBytes(std::uint64_t bytes) {
    const std::uint64_t most = Count(limits_.max_bytes);
    if (most != 0 && bytes > most - Count(summary_.bytes)) {
      return Exceeded("maxBytes", std::to_string(most) + " bytes");
    }
    summary_.bytes = Bytes{Count(summary_.bytes) + bytes};
    return {};
  }
  Result<void> CheckTime() const {
    if (limits_.timeout == Millis(0) || Clock::now() < deadline_) return {};
    return Exceeded("timeout", std::to_string(limits_.timeout.count()) + " ms");
  }

  ArchiveSummary TakeSummary() { return std::move(summary_); }

 private:
  using Clock = std::chrono::steady_clock;

  static Result<void> Exceeded(std::string_view field, std::string_view limit) {
    return std::unexpected(
        Error{.code = ErrorCode::kFsError,
              .message = std::string("the archive takes more than ").append(limit),
              .field = std::string(field),
              .remedy = "Raise the limit of the call if that is expected."});
  }

  ArchiveLimits limits_;
  Clock::time_point deadline_;
  ArchiveSummary summary_{};
};

}  // namespace palmshed::workspace
