#include "backends/native/offers.h"

#include <string>

#include "backends/native/host.h"
#include "backends/native/remedies.h"
#include "backends/native/state.h"
#include "backends/native/state_paths.h"
#include "base/processors.h"
#include "kernel/landlock.h"
#include "palmshed/error.h"
#include "plan/plan.h"

namespace palmshed::backends::native {

plan::Offer BasicOffer(const Host& host) {
  return {.backend = kName,
          .scopes = host.landlock_abi >= kernel::kLandlockAbiWithScopes,
          .usable_cpus = static_cast<double>(OnlineProcessors())};
}

void OfferRuntimes(const Host& host, plan::Offer& offer) {
  offer.search_path = host.runtimes.get().search_path;
  offer.runtime_env = host.runtimes.get().env;
}

plan::Offer FullOffer(const Host& host) {
  plan::Offer offer = BasicOffer(host);
  offer.private_view = true;
  offer.network_disabled = true;
  offer.groups_dropped = host.root || !host.extra_groups;
  offer.fresh_proc = true;
  offer.terminals = true;
  OfferRuntimes(host, offer);
  return offer;
}

void OfferFiltered(const HostDirectory& root, const std::string& id, const Error& refused,
                   plan::Offer& offer) {
  offer.filtered_view = true;
  offer.private_view_missing = ExplainRefusal(refused, ReadKernelFileFromHost);
  offer.workspace = WorkspacePath(root, id);
  offer.tmp = TmpPath(root, id);
  offer.terminals_missing = {
      .reason = "without a mount namespace there is no /dev/pts but the host's",
      .remedy = "Allow user namespaces for this user, or run the program without a terminal."};
  // Landlock answers EACCES for a file that is not shown, and git takes that for a broken host.
  offer.runtime_env.emplace_back("GIT_CONFIG_NOSYSTEM", "1");
}

void OfferNothing(const Error& refused, plan::Offer& offer) {
  const auto missing = ExplainRefusal(refused, ReadKernelFileFromHost);
  offer.private_view_missing = missing;
  offer.network_missing = missing;
  offer.proc_missing = missing;
  offer.terminals_missing = missing;
}

}  // namespace palmshed::backends::native
