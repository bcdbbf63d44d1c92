// Session keyrings: none is inherited, none is shared.
#pragma once

namespace palmshed::child {

/// In the launcher: joins an empty keyring that nobody may use, so that what a sandbox inherits is
/// already nothing.
long SealSessionKeyring();

/// In init: joins a fresh keyring; EDQUOT where the user's quota of keys is used up (keyrings(7):
/// 200 for an ordinary user).
long JoinFreshKeyring();

}  // namespace palmshed::child
