#include <sys/prctl.h>

#include <cerrno>
#include <string_view>

#include "child/failure.h"
#include "child/kernel_abi.h"
#include "child/keyring.h"
#include "child/network.h"
#include "child/raw.h"
#include "child/setup.h"
#include "child/wire.h"

namespace palmshed::child {
namespace {

constexpr std::string_view kHostname = "sandbox";

// A new user namespace comes with a full bounding set.
Failure EmptyBoundingSet() {
  for (unsigned capability = 0; capability <= kMaxCapability; ++capability) {
    const long result = Prctl(PR_CAPBSET_DROP, capability);
    if (result == -EINVAL && capability > 0) break;  // One more than the kernel knows.
    if (result < 0) return FailureIf(result, Step::kDropBounding);
  }
  return kSuccess;
}

}  // namespace

Failure JoinKeyring(const SetupPlan&) { return FailureIf(JoinFreshKeyring(), Step::kKeyring); }

Failure SetUpNames(const SetupPlan& plan) {
  const long named = Call(SYS_sethostname, kHostname.data(), kHostname.size());
  if (named < 0) return FailureIf(named, Step::kHostname);
  if ((plan.config->flags & kInitLoopback) != 0) {
    const long up = BringLoopbackUp();
    if (up < 0) return FailureIf(up, Step::kLoopback);
  }
  return JoinKeyring(plan);
}

// The bounding set is out of an ordinary user's reach; with no_new_privs nothing can draw on it.
Failure DropPrivileges(const SetupPlan& plan) {
  if ((plan.config->flags & kInitFiltered) == 0) {
    const Failure bounded = EmptyBoundingSet();
    if (bounded.failed()) return bounded;
  }
  const long ambient = Prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL);
  if (ambient < 0) return FailureIf(ambient, Step::kDropCapabilities);
  const CapabilityHeader header{kCapabilityVersion3, 0};
  const CapabilityWord none[2] = {};
  const long dropped = Call(SYS_capset, &header, none);
  if (dropped < 0) return FailureIf(dropped, Step::kDropCapabilities);
  return FailureIf(Prctl(PR_SET_NO_NEW_PRIVS, 1), Step::kNoNewPrivs);
}

}  // namespace palmshed::child
