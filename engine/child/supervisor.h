// The launcher's stand-in on hosts that refuse user namespaces.
#pragma once

namespace palmshed::child {

/// Makes sandboxes without namespaces until the engine goes, then ends them and returns to nobody.
/// Preconditions: single-threaded, inherited state reset. Refuses to run as root.
[[noreturn]] void RunSupervisor();

}  // namespace palmshed::child
