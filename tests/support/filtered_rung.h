// The weaker rung: an ordinary user on a host that refuses namespaces (docs/security).
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace palmshed::tests {

/// Whether this kernel has what the rung needs: Landlock with scopes.
bool HasLandlockScopes();
/// Runs `body` in a child of this process, as an ordinary user who cannot make namespaces. Orphans
/// below it become its children.
void OnFilteredRung(const std::function<void()>& body);
/// From here on clone(2) refuses user namespaces, and only those. False when it cannot be had.
bool RefuseUserNamespaces();
/// From here on landlock_restrict_self(2) answers that it worked and does nothing.
bool PretendLandlock();
/// The number of the one process below this one that is called `name`; 0 when there is none.
pid_t DescendantCalled(const std::string& name);

}  // namespace palmshed::tests
