#include "plan/limits.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "palmshed/error.h"
#include "palmshed/units.h"

namespace palmshed::plan {
namespace {

std::string Show(Millis time) { return std::to_string(time.count()) + " ms"; }
std::string Show(Bytes size) { return std::to_string(Count(size)) + " bytes"; }
std::string Show(std::uint64_t count) { return std::to_string(count) + " processes"; }
std::string Show(double cores) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, cores);
  return std::string(text, end.ptr) + " cores";
}

template <class T>
Result<T> LowerTo(std::string_view field, const std::optional<T>& asked, T ceiling) {
  if (!asked || *asked == T{}) return ceiling;
  if (ceiling == T{} || *asked <= ceiling) return *asked;
  return std::unexpected(InvalidOption(
      field, "of " + Show(*asked) + " is more than the sandbox allows: " + Show(ceiling)));
}

Result<void> RequireLimit(bool asked, std::string_view control, std::string_view field,
                          Concessions& concessions) {
  if (!asked) return {};
  const std::string remedy = "Leave " + std::string(field) + " out, or name " +
                             std::string(control) + " in degraded to run without it.";
  return concessions.Require(control, field, "no backend of this version enforces it", remedy);
}

}  // namespace

Result<Millis> Lower(std::string_view field, std::optional<Millis> asked, Millis ceiling) {
  return LowerTo(field, asked, ceiling);
}
Result<Bytes> Lower(std::string_view field, std::optional<Bytes> asked, Bytes ceiling) {
  return LowerTo(field, asked, ceiling);
}
Result<double> Lower(std::string_view field, std::optional<double> asked, double ceiling) {
  return LowerTo(field, asked, ceiling);
}
Result<std::uint64_t> Lower(std::string_view field, std::optional<std::uint64_t> asked,
                            std::uint64_t ceiling) {
  return LowerTo(field, asked, ceiling);
}

Concessions::Concessions(const std::vector<std::string>& degraded, std::vector<std::string> weaker)
    : degraded_(degraded), weaker_(std::move(weaker)) {}

bool Concessions::Concede(std::string_view control) {
  if (std::ranges::find(degraded_, control) == degraded_.end()) return false;
  if (std::ranges::find(weaker_, control) == weaker_.end()) weaker_.emplace_back(control);
  return true;
}

Result<void> Concessions::Require(std::string_view control, std::string_view field,
                                  std::string_view missing, std::string_view remedy) {
  if (Concede(control)) return {};
  return std::unexpected(Unsupported(field, missing, remedy));
}

Result<void> RequirePending(const PendingLimits& limits, Concessions& concessions) {
  const bool is_rate = limits.cpu_quota > 0;
  const bool is_free = limits.usable_cpus > 0 && limits.cpu_quota >= limits.usable_cpus;
  const auto require = [&](bool asked, std::string_view control) {
    return RequireLimit(asked, control, control, concessions);
  };
  PALMSHED_TRY_VOID(require(limits.memory != Bytes{}, "memory"));
  PALMSHED_TRY_VOID(
      RequireLimit(is_rate && !is_free, "cpuQuota", limits.cpu_quota_field, concessions));
  PALMSHED_TRY_VOID(require(limits.pids != 0, "pids"));
  PALMSHED_TRY_VOID(require(limits.cpu_time_limit != Millis{0}, "cpuTimeLimit"));
  return require(limits.disk_quota != Bytes{}, "diskQuota");
}

Result<void> RefusePending(bool asked, std::string_view field) {
  if (!asked) return {};
  return std::unexpected(Unsupported(field, "no backend of this version has it",
                                     "Leave " + std::string(field) + " out."));
}

}  // namespace palmshed::plan
