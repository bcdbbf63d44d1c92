#include "child/keyring.h"

#include <cerrno>

#include "child/kernel_abi.h"
#include "child/raw.h"

namespace palmshed::child {

long SealSessionKeyring() {
  const long joined = Call(SYS_keyctl, kKeyctlJoinSessionKeyring, nullptr);
  if (joined == -ENOSYS) return 0;  // A kernel without keyrings.
  if (joined < 0) return joined;
  return Call(SYS_keyctl, kKeyctlSetPermissions, kKeySessionKeyring, 0);
}

long JoinFreshKeyring() {
  const long joined = Call(SYS_keyctl, kKeyctlJoinSessionKeyring, nullptr);
  return joined == -ENOSYS ? 0 : joined;
}

}  // namespace palmshed::child
