// Capabilities are proven, not assumed: a throwaway sandbox is made as any other, and a probe
// inside tries what must be refused and what must work.
#pragma once

#include <functional>
#include <memory>

#include "backends/backend.h"
#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/options.h"
#include "run/sandbox.h"

namespace palmshed::run {

using MakeSandbox = std::function<Result<std::shared_ptr<SandboxState>>(const SandboxOptions&)>;

/// The backend's description with every flag and control set from what the probe saw. A sandbox
/// that cannot be made is no error of this call: its controls then do not work, and say why.
/// Blocks; not on the engine's thread.
Result<Capabilities> SelfTest(backends::Backend& backend, const MakeSandbox& make);

}  // namespace palmshed::run
