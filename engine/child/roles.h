// The three processes that this program can be.
#pragma once

namespace palmshed::child {

/// Starts the launcher from outside its user namespace and stays with it. Arguments: wire.h.
[[noreturn]] void RunStage(const char* uid_map, const char* gid_map, const char* flags);
/// PID 1 above all sandboxes: makes them, only that.
[[noreturn]] void RunLauncher();
/// PID 1 of a sandbox: sets it up from inside, then starts and ends its executions.
[[noreturn]] void RunSandbox();
/// The same without a launcher: does what the stage and the launcher do for others, and makes its
/// view. Options: wire.h.
[[noreturn]] void RunDirectSandbox(const char* options);

/// The probe of the self-test; not one of the three: it runs inside a sandbox, as a workload.
/// Arguments: backends/backend.h, ProbeProgram.
[[noreturn]] void RunProbe(int argc, char** argv);

}  // namespace palmshed::child
