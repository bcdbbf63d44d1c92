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

Failure TakeNames(bool own_network) {
  const long named = Call(SYS_sethostname, kHostname.data(), kHostname.size());
  if (named < 0) return FailureIf(named, Step::kHostname);
  return own_network ? FailureIf(BringLoopbackUp(), Step::kLoopback) : kSuccess;
}

}  // namespace

// Where there is none to be had the launcher's sealed one stays.
Failure JoinKeyring(const SetupPlan&) {
  const long joined = JoinFreshKeyring();
  // NOLINTNEXTLINE(misc-include-cleaner): the check does not know that <cerrno> has EDQUOT.
  return joined == -EDQUOT ? kSuccess : FailureIf(joined, Step::kKeyring);
}

Failure SetUpNames(const SetupPlan& plan) {
  const Failure named = TakeNames((plan.config->flags & kInitLoopback) != 0);
  return named.failed() ? named : JoinKeyring(plan);
}

Failure SetUpAlone(bool own_network) {
  const Failure named = TakeNames(own_network);
  if (named.failed()) return named;
  const Failure joined = FailureIf(JoinFreshKeyring(), Step::kKeyring);
  return joined.failed() ? joined : EmptyBoundingSet();
}

// The bounding set is out of an ordinary user's reach without namespaces; with no_new_privs nothing
// can draw on it.
Failure DropBoundingSet(const SetupPlan&) { return EmptyBoundingSet(); }

Failure DropPrivileges(const SetupPlan&) {
  const long ambient = Prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL);
  if (ambient < 0) return FailureIf(ambient, Step::kDropCapabilities);
  const CapabilityHeader header{kCapabilityVersion3, 0};
  const CapabilityWord none[2] = {};
  const long dropped = Call(SYS_capset, &header, none);
  if (dropped < 0) return FailureIf(dropped, Step::kDropCapabilities);
  return FailureIf(Prctl(PR_SET_NO_NEW_PRIVS, 1), Step::kNoNewPrivs);
}

}  // namespace palmshed::child
