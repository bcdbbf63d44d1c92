// Limits of an execution against those of its sandbox, and controls that have to be refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "palmshed/error.h"
#include "palmshed/options.h"
#include "palmshed/units.h"

namespace palmshed::plan {

/// The value in force: the execution's where it asks for one, else the sandbox's. INVALID_OPTIONS
/// naming both when it asks for more than the sandbox has. Zero is no limit on the sandbox's side
/// and no wish on the execution's.
Result<Millis> Lower(std::string_view field, std::optional<Millis> asked, Millis ceiling);
Result<Bytes> Lower(std::string_view field, std::optional<Bytes> asked, Bytes ceiling);
Result<double> Lower(std::string_view field, std::optional<double> asked, double ceiling);
Result<std::uint64_t> Lower(std::string_view field, std::optional<std::uint64_t> asked,
                            std::uint64_t ceiling);

/// Decides about controls that cannot be enforced: they are refused unless the caller named them in
/// `degraded`, and then they are on record as weaker.
class Concessions {
 public:
  /// `weaker` may hold earlier concessions.
  Concessions(const std::vector<std::string>& degraded, std::vector<std::string> weaker);

  /// `control` was asked for (by `field`) and is missing.
  Result<void> Require(std::string_view control, std::string_view field, std::string_view missing,
                       std::string_view remedy);
  /// True when `degraded` names the control, which then is on record.
  bool Concede(std::string_view control);
  std::vector<std::string> TakeWeaker() { return std::move(weaker_); }

 private:
  const std::vector<std::string>& degraded_;
  std::vector<std::string> weaker_;
};

/// The limits that no backend enforces yet, zero where there is none.
struct PendingLimits {
  Millis cpu_time_limit{0};
  double cpu_quota = 0;
  std::string_view cpu_quota_field = "cpuQuota";
  double usable_cpus = 0;
  Bytes memory{};
  std::uint64_t pids = 0;
  Bytes disk_quota{};
};
Result<void> RequirePending(const PendingLimits& limits, Concessions& concessions);

/// UNSUPPORTED for a feature that was asked for and that no backend has yet.
Result<void> RefusePending(bool asked, std::string_view field);

}  // namespace palmshed::plan
