// The messages between the engine and its helper program, and the order in which they travel.
//
// Sockets are AF_UNIX, SOCK_SEQPACKET: one message is one request or one answer. Both sides are
// built from the same sources and shipped together, so there is no version to negotiate: structs
// go over the wire as they are. Strings follow the struct, each ended by NUL.
//
//   engine                       launcher                        sandbox init
//     | -- LauncherConfig ---------> |
//     | <------- LauncherReady ----- |
//     | -- InitConfig, locks -------------------------------------> |   (waits in its socket)
//     | -- CreateRequest, socket --> | -- clone, exec -------------> |
//     | <------- CreateReply, pidfd  |                               |
//     | <------------------------------------------- InitReady ----- |
//     | -- ExecRequest, stdio -------------------------------------> |
//     | <------------------------------------------- ExecEnded ----- |
#pragma once

#include <cstdint>
#include <type_traits>

namespace palmshed::child {

// Descriptors that the helper is started with.
inline constexpr int kSocketFd = 3;     ///< stage, launcher: the engine; sandbox: its own socket.
inline constexpr int kEnginePidfd = 4;  ///< stage, launcher: pidfd of the engine.
inline constexpr int kHelperFd = 5;     ///< stage, launcher: the helper itself, for execveat.
inline constexpr int kWorkspaceTreeFd = 4;  ///< sandbox: detached mount of the workspace.
inline constexpr int kTmpTreeFd = 5;        ///< sandbox: detached mount of /tmp.

inline constexpr std::uint32_t kInsideUid = 1000;        ///< uid and gid inside a user namespace.
inline constexpr std::uint32_t kMaxMessage = 64 * 1024;  ///< Largest message, payload included.
inline constexpr int kMaxRlimits = 16;
inline constexpr char kNewgidmap[] = "/usr/bin/newgidmap";

// Where a process of ours failed. The name of each is in step_names.h, for error messages.
enum class Step : std::uint32_t {
  kNone,
  kEngineGone,
  kCloneLauncher,
  kUidMap,
  kGidMap,
  kSetgroups,
  kExecLauncher,
  kReadConfig,
  kPrivateMounts,
  kUnshareMounts,
  kViewRoot,
  kViewEntry,  ///< `detail` is the index of the entry.
  kViewProc,
  kPivotRoot,
  kSpareNetwork,
  kEnterHostView,
  kOpenWorkspace,
  kOpenTmp,
  kEnterView,
  kCloneSandbox,
  kSandboxUidMap,
  kSandboxGidMap,
  kSandboxIds,
  kSandboxCapabilities,
  kExecInit,
  kOpenProc,  ///< Without namespaces: the host's list of processes.
  kMountProc,
  kMountShm,
  kMountPts,
  kAttachWorkspace,
  kAttachTmp,
  kHostname,
  kLoopback,
  kKeyring,
  kDropBounding,
  kDropCapabilities,
  kNoNewPrivs,
  kLandlockCreate,
  kLandlockRule,  ///< `detail` is the index of the rule.
  kLandlockRestrict,
  kSeccomp,
  kOpenNull,
  kThread,
  kSignalScope,
  kGuard,
  kRequest,  ///< A request was malformed or too large to hold.
  kClone,    ///< The workload's vfork.
  kRlimit,
  kChdir,
  kStdio,
  kExec,
};

// ---- stage: argv = {"palmshed-init", "stage", uid_map, gid_map, flags}
// uid_map and gid_map are the texts for /proc/<launcher>/{uid,gid}_map; flags is decimal:
inline constexpr std::uint32_t kStageDenySetgroups =
    1;  ///< An ordinary user must, user_namespaces(7).
inline constexpr std::uint32_t kStageNoUserNamespace = 2;  ///< Root on a host without them.
inline constexpr std::uint32_t kStageNewgidmap = 8;  ///< gid_map is written by newgidmap(1), which
                                                     ///< leaves setgroups(2) usable.
inline constexpr std::uint32_t kStageFiltered = 4;   ///< No namespaces at all: supervisor.h. The
                                                     ///< launcher's messages, of whose config and
                                                     ///< requests only the workspace is used.

// ---- launcher
inline constexpr std::uint32_t kLauncherRoot = 1;         ///< Sandboxes get uids of their own.
inline constexpr std::uint32_t kLauncherHostNetwork = 2;  ///< Sandboxes share the host's network.
inline constexpr std::uint32_t kLauncherNoUserNamespace = 4;
inline constexpr std::uint32_t kLauncherSpareNetwork = 8;  ///< Keep a spare network namespace.
inline constexpr std::uint32_t kLauncherDropGroups = 16;   ///< An ordinary user who may (stage).

struct LauncherConfig {
  std::uint32_t flags;
  std::uint32_t entries;  ///< How many ViewEntry records follow.
};

enum class ViewOp : std::uint32_t {
  kDirectory,  ///< a: path
  kFile,       ///< a: path, b: content (bytes_b, may hold NUL)
  kSymlink,    ///< a: path, b: target
  kBind,       ///< a: path inside, b: path on the host; the mount point is made as needed. "/": the
               ///< root itself, in place of what earlier records made.
  kProc,       ///< a: path; the launcher's own /proc
};
inline constexpr std::uint32_t kViewWritable =
    1;  ///< kBind: not read-only (device nodes, host view).
inline constexpr std::uint32_t kViewRecursive = 2;  ///< kBind: with the mounts below.
inline constexpr std::uint32_t kViewOptional = 4;   ///< kBind: skipped where the source is missing.
inline constexpr std::uint32_t kViewDevice = 8;     ///< kBind: keeps device nodes usable.

// A record: this struct, then a, NUL, b, NUL, then padding to a multiple of 8. Every bind is
// nosuid, and nodev unless kViewDevice.
struct ViewEntry {
  ViewOp op;
  std::uint32_t flags;
  std::uint32_t mode;     ///< Permission bits of what is made.
  std::uint32_t bytes_a;  ///< Without the NUL.
  std::uint32_t bytes_b;  ///< Without the NUL.
  std::uint32_t reserved;
};

enum class LauncherOp : std::uint32_t { kCreate = 1 };
enum class LauncherAnswer : std::uint32_t { kReady = 1, kFailed, kCreated, kCreateFailed, kDied };

// engine -> launcher. Descriptors: the init's socket. Strings: workspace, tmp (host paths).
struct CreateRequest {
  LauncherOp op;
  std::uint32_t sequence;
  std::uint32_t uid;  ///< Host uid (and gid) of the sandbox; used with kLauncherRoot.
  std::uint32_t reserved;
};

// launcher -> engine; kCreated carries the pidfd of init.
struct LauncherReply {
  LauncherAnswer answer;
  std::uint32_t sequence;  ///< Of the CreateRequest; 0 for kReady and kFailed.
  Step step;
  std::int32_t sys_errno;
  std::uint32_t detail;
  std::int32_t wait_status;  ///< kDied
  std::uint64_t stamps[6];   ///< CLOCK_MONOTONIC ns at the boundaries of the steps, for --timings.
};

// ---- sandbox init
inline constexpr std::uint32_t kInitLoopback = 1;     ///< Bring the namespace's lo up.
inline constexpr std::uint32_t kInitNoProc = 2;       ///< degraded: proc
inline constexpr std::uint32_t kInitSignalScope = 4;  ///< Landlock ABI >= 6: a scope per execution.
inline constexpr std::uint32_t kInitFiltered = 8;  ///< No namespaces: Landlock and seccomp alone.

struct LandlockRule {
  std::uint64_t access;
  std::uint32_t bytes;  ///< Length of the path that follows, without its NUL.
  std::uint32_t optional;
};

struct Rlimit {
  std::uint32_t resource;
  std::uint32_t reserved;
  std::uint64_t soft;
  std::uint64_t hard;
};

// engine -> init, first message. Descriptors: lock files, kept open as long as init lives.
// Then: `filter_instructions` sock_filter structs, then per rule a LandlockRule, path, NUL, padding
// to a multiple of 8.
struct InitConfig {
  std::uint32_t flags;
  std::uint32_t filter_instructions;
  std::uint32_t rules;
  std::uint32_t rlimit_count;
  std::uint64_t handled_fs;  ///< 0 with handled_net and scoped 0: no Landlock.
  std::uint64_t handled_net;
  std::uint64_t scoped;
  std::uint64_t shm_bytes;      ///< Size of /dev/shm.
  Rlimit rlimits[kMaxRlimits];  ///< Set in each workload.
};

enum class InitOp : std::uint32_t { kExec = 1, kKill, kWorkspace };
enum class InitAnswer : std::uint32_t { kReady = 1, kFailed, kEnded, kWorkspace };

// Descriptors, in this order: stdin if kExecStdin, stdout, stderr, then a memfd holding the payload
// if kExecPayloadInFile.
inline constexpr std::uint32_t kExecStdin = 1;  ///< Else the sandbox's own /dev/null.
inline constexpr std::uint32_t kExecPayloadInFile = 2;

// Payload: `paths` strings (what to try to execute, in order, as execvp(3) would), `argc` strings,
// `envc` strings, then the working directory (absolute, inside).
struct ExecRequest {
  InitOp op;
  std::uint32_t sequence;  ///< Unique in the life of a sandbox, never 0.
  std::uint32_t flags;
  std::uint32_t paths;
  std::uint32_t argc;
  std::uint32_t envc;
  std::uint64_t payload_bytes;
};

// Sends a signal to the main process of an execution, or to all of its processes. Unknown and ended
// executions are ignored.
struct KillRequest {
  InitOp op;
  std::uint32_t sequence;
  std::int32_t signal;
  std::uint32_t all;
};

// Asks for a descriptor of the workspace, opened inside.
struct WorkspaceRequest {
  InitOp op;
  std::uint32_t sequence;
};

enum class EndKind : std::uint32_t { kExited = 1, kStartupFailed };

// init -> engine. kWorkspace carries the descriptor (or step/sys_errno).
struct InitReply {
  InitAnswer answer;
  std::uint32_t sequence;
  Step step;  ///< kFailed; kEnded with kStartupFailed.
  std::int32_t sys_errno;
  std::uint32_t detail;  ///< kStartupFailed at kExec: 1 when a file of that name exists.
  EndKind kind;
  std::int32_t wait_status;
  std::uint32_t killed_leftovers;  ///< 1 when processes were left running and were killed.
  std::uint64_t cpu_ns;            ///< User and system time of the execution as far as reaped.
  std::uint64_t max_rss_bytes;     ///< Largest resident set of one process.
  std::uint64_t started_ns;        ///< CLOCK_MONOTONIC when the program was executed.
  std::uint64_t ended_ns;          ///< CLOCK_MONOTONIC when it was reaped.
  std::uint64_t stamps[10];        ///< kReady: CLOCK_MONOTONIC ns at the boundaries of the steps.
};

static_assert(std::is_trivially_copyable_v<LauncherConfig> && sizeof(LauncherConfig) % 8 == 0);
static_assert(std::is_trivially_copyable_v<ViewEntry> && sizeof(ViewEntry) % 8 == 0);
static_assert(std::is_trivially_copyable_v<InitConfig> && sizeof(InitConfig) % 8 == 0);
static_assert(std::is_trivially_copyable_v<ExecRequest> && sizeof(ExecRequest) % 8 == 0);
static_assert(std::is_trivially_copyable_v<InitReply>);

}  // namespace palmshed::child
