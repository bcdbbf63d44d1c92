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
#include "plan/plan.h"

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

/// How to have the control, or go on without it.
std::string RemedyFor(std::string_view control, std::string_view field, const std::string& remedy) {
  const std::string without = "name " + std::string(control) + " in degraded to run without it";
  if (remedy.empty()) return "Leave " + std::string(field) + " out, or " + without + ".";
  if (remedy.ends_with('.')) return remedy + " Or " + without + ".";
  return remedy + " (or " + without + ")";
}

/// Takes a limit out that is missing and conceded.
template <class T>
Result<void> Require(T& limit, std::string_view control, std::string_view field,
                     const Offer::Limit& offered, Concessions& concessions) {
  if (limit == T{} || offered.enforcement != Enforcement::kNone) return {};
  limit = T{};
  const auto& [reason, remedy] = offered.missing;
  return concessions.Require(control, field,
                             reason.empty() ? "nothing on this host enforces it" : reason,
                             RemedyFor(control, field, remedy));
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

Offer WithLimits(Offer offer) {
  if (const auto find = std::exchange(offer.find_limits, nullptr)) find(offer);
  return offer;
}

Result<Limits> Enforceable(const Limits& asked, std::string_view quota_field, const Offer& offer,
                           Concessions& concessions) {
  Limits limits = asked;
  if (limits.any() && offer.find_limits) {
    return Enforceable(asked, quota_field, WithLimits(offer), concessions);
  }
  if (offer.usable_cpus > 0 && limits.cpu_quota >= offer.usable_cpus) limits.cpu_quota = 0;
  const auto require = [&](auto& limit, std::string_view control, const Offer::Limit& offered) {
    return Require(limit, control, control, offered, concessions);
  };
  PALMSHED_TRY_VOID(require(limits.memory, "memory", offer.memory));
  PALMSHED_TRY_VOID(
      Require(limits.cpu_quota, "cpuQuota", quota_field, offer.cpu_quota, concessions));
  PALMSHED_TRY_VOID(require(limits.pids, "pids", offer.pids));
  PALMSHED_TRY_VOID(require(limits.cpu_time, "cpuTimeLimit", offer.cpu_time));
  PALMSHED_TRY_VOID(require(limits.disk, "diskQuota", offer.disk));
  return limits;
}

Result<void> RefusePending(bool asked, std::string_view field) {
  if (!asked) return {};
  return std::unexpected(Unsupported(field, "no backend of this version has it",
                                     "Leave " + std::string(field) + " out."));
}

}  // namespace palmshed::plan
