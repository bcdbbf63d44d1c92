#include "kernel/landlock.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace palmshed::kernel {
namespace {

constexpr std::uint32_t kCreateRulesetVersion = 1;

}  // namespace

LandlockRights RightsOfLandlock(int abi) {
  LandlockRights rights;
  if (abi >= 1) rights.fs = landlock::kRefer - 1;
  if (abi >= 2) rights.fs |= landlock::kRefer;
  if (abi >= 3) rights.fs |= landlock::kTruncate;
  if (abi >= 4) rights.net = landlock::kBindTcp | landlock::kConnectTcp;
  if (abi >= 5) rights.fs |= landlock::kIoctlDev;
  if (abi >= 6) rights.scoped = landlock::kScopeAbstractUnixSocket | landlock::kScopeSignal;
  return rights;
}

int LandlockAbi() {
  // ENOSYS: not built in; EOPNOTSUPP: built in, not among the active modules (landlock(7)).
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, kCreateRulesetVersion);
  return static_cast<int>(std::max(abi, 0L));
}

}  // namespace palmshed::kernel
