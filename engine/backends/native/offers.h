// What can be had on this host, as far as it does not depend on limits.
#pragma once

#include <string>

#include "backends/native/host.h"
#include "backends/native/state_paths.h"
#include "palmshed/error.h"
#include "plan/plan.h"

namespace palmshed::backends::native {

inline constexpr char kName[] = "native";

/// What every sandbox has; the rest is added below.
plan::Offer BasicOffer(const Host& host);
/// Waits until the runtimes have been found.
void OfferRuntimes(const Host& host, plan::Offer& offer);
/// What the best rung has.
plan::Offer FullOffer(const Host& host);
/// Without namespaces, which `refused` says why: the directories of the sandbox `id` below `root`
/// are seen under these names.
void OfferFiltered(const HostDirectory& root, const std::string& id, const Error& refused,
                   plan::Offer& offer);
/// Nothing can be had, for this reason.
void OfferNothing(const Error& refused, plan::Offer& offer);

}  // namespace palmshed::backends::native
