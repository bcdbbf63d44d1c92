// Where a sandbox's writable files live, and what of that can be had here.
#pragma once

#include <optional>
#include <string>

#include "backends/native/host.h"
#include "backends/native/state.h"
#include "kernel/sized_storage.h"
#include "palmshed/error.h"
#include "plan/plan.h"
#include "workspace/resolve.h"

namespace palmshed::backends::native {

/// What makes a difference to where a sandbox's files can live.
struct StorageKind {
  bool root = false;         ///< The engine is root.
  bool private_view = true;  ///< The caller has not opted out of one.
};

/// Fills in `disk`, `storage_memory` and `storage_loop` of an offer whose views are known.
void OfferStorage(plan::Offer& offer, StorageKind kind);

/// The trees that take the place of the home's directories; nullopt where those serve, or where
/// init makes the storage itself.
Result<std::optional<kernel::StorageTrees>> MakeStorage(const Host& host,
                                                        const plan::SandboxPlan& plan,
                                                        const SandboxHome& home,
                                                        workspace::Owner owner);

/// True where init does: an ordinary user can mount only in the sandbox's own user namespace.
bool InitMakesStorage(const Host& host, const plan::SandboxPlan& plan);

}  // namespace palmshed::backends::native
