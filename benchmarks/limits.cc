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

enum class Against { kFloor, kPeer };

struct Limit {
  const char* variant;
  std::chrono::milliseconds gap;
  Against against;
  double most;
};

constexpr std::array kLimits{
    Limit{kExec, std::chrono::milliseconds(0), Against::kFloor, 1.3},
    Limit{kExec, std::chrono::milliseconds(50), Against::kFloor, 1.3},
    Limit{kCommandLine, std::chrono::milliseconds(0), Against::kPeer, 0.65},
    Limit{kCommandLine, std::chrono::milliseconds(50), Against::kPeer, 0.65},
};

std::optional<Ratio> Measured(std::span<const LatencyTable> tables, const Limit& limit) {
  const auto table = std::ranges::find(tables, limit.gap, &LatencyTable::gap);
  if (table == tables.end()) return std::nullopt;
  const auto row = std::ranges::find(table->rows, limit.variant, &Row::name);
  if (row == table->rows.end()) return std::nullopt;
  return limit.against == Against::kFloor ? row->to_floor : row->to_peer;
}

}  // namespace

std::vector<std::string> Excesses(std::span<const LatencyTable> tables) {
  std::vector<std::string> excesses;
  for (const Limit& limit : kLimits) {
    const char* unit = limit.against == Against::kFloor ? "V" : "B";
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

}  // namespace palmshed::benchmarks
