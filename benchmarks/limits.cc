#include "benchmarks/limits.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/peers.h"
#include "benchmarks/report.h"
#include "benchmarks/statistics.h"

namespace palmshed::benchmarks {
namespace {

enum class Against { kFloor, kPeer, kUnlimited };

struct Limit {
  const char* variant;
  std::chrono::milliseconds gap;
  Against against;
  double most;
};

/// docs/performance.md says how far today's code stays below them.
constexpr std::array kLimits{
    Limit{kLimitedExec, std::chrono::milliseconds(0), Against::kUnlimited, 1.1},
    Limit{kLimitedExec, std::chrono::milliseconds(50), Against::kUnlimited, 1.1},
    Limit{kLimitedExec, std::chrono::milliseconds(1000), Against::kUnlimited, 1.1},
    Limit{kExec, std::chrono::milliseconds(0), Against::kFloor, 1.3},
    Limit{kExec, std::chrono::milliseconds(50), Against::kFloor, 1.3},
    Limit{kCommandLine, std::chrono::milliseconds(0), Against::kPeer, 1.5},
    Limit{kCommandLine, std::chrono::milliseconds(50), Against::kPeer, 1.5},
};

/// Of the median to the tenth percentile of V.
constexpr double kMostUnrest = 1.3;

const char* Unit(Against against) {
  switch (against) {
    case Against::kFloor:
      return "V";
    case Against::kPeer:
      return "B";
    case Against::kUnlimited:
      return "x without limits";
  }
  return "";
}

bool IsAbsent(std::span<const LatencyTable> tables, const Limit& limit) {
  const auto table = std::ranges::find(tables, limit.gap, &LatencyTable::gap);
  return table != tables.end() &&
         std::ranges::find(table->absent, limit.variant) != table->absent.end();
}

std::optional<Ratio> Measured(std::span<const LatencyTable> tables, const Limit& limit) {
  const auto table = std::ranges::find(tables, limit.gap, &LatencyTable::gap);
  if (table == tables.end()) return std::nullopt;
  const auto row = std::ranges::find(table->rows, limit.variant, &Row::name);
  if (row == table->rows.end()) return std::nullopt;
  if (limit.against != Against::kPeer) return row->to_floor;
  const Ratio* to_peer = ToPeer(*row, kPeer);
  return to_peer == nullptr ? std::nullopt : std::optional(*to_peer);
}

}  // namespace

std::vector<std::string> Excesses(std::span<const LatencyTable> tables) {
  std::vector<std::string> excesses;
  for (const Limit& limit : kLimits) {
    if (IsAbsent(tables, limit)) continue;
    const char* unit = Unit(limit.against);
    const std::string what = fmt::format("{} with {} ms idle", limit.variant, limit.gap.count());
    const auto ratio = Measured(tables, limit);
    if (!ratio) {
      excesses.push_back(fmt::format("{}: was not measured against {}", what, unit));
    } else if (ratio->low > limit.most) {
      excesses.push_back(fmt::format("{}: {:.2f} {} (at least {:.2f}), limit {:.2f}", what,
                                     ratio->value, unit, ratio->low, limit.most));
    }
  }
  return excesses;
}

bool TooBusy(std::span<const LatencyTable> tables) {
  return std::ranges::any_of(tables, [](const LatencyTable& table) {
    const auto floor = std::ranges::find(table.rows, kFloor, &Row::name);
    return floor != table.rows.end() && floor->median > floor->p10 * kMostUnrest;
  });
}

}  // namespace palmshed::benchmarks
