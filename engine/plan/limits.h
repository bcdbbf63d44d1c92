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
#include "plan/plan.h"

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

/// The offer with its limits filled in.
Offer WithLimits(Offer offer);

/// What of `asked` is to be enforced: without what is free (a quota of all the processors there
/// are) and without what is missing from the offer and conceded; refused is what is missing and
/// not conceded. `quota_field` is the option that the quota came from.
Result<Limits> Enforceable(const Limits& asked, std::string_view quota_field, const Offer& offer,
                           Concessions& concessions);

/// UNSUPPORTED for a feature that was asked for and that no backend has yet.
Result<void> RefusePending(bool asked, std::string_view field);

}  // namespace palmshed::plan
