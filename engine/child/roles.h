// The three processes that this program can be.
#pragma once

namespace palmshed::child {

/// Starts the launcher from outside its user namespace and stays with it. Arguments: wire.h.
[[noreturn]] void RunStage(const char* uid_map, const char* gid_map, const char* flags);
/// PID 1 above all sandboxes: makes them, only that.
[[noreturn]] void RunLauncher();
/// PID 1 of a sandbox: sets it up from inside, then starts and ends its executions.
[[noreturn]] void RunSandbox();

}  // namespace palmshed::child
