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
//
// A direct sandbox has no launcher: the engine clones its init, which makes its view while the
// engine is still sending it.
#pragma once

#include <cstdint>
#include <type_traits>

namespace palmshed::child {

// Descriptors that the helper is started with.
inline constexpr int kSocketFd = 3;     ///< stage, launcher: the engine; sandbox: its own socket.
inline constexpr int kEnginePidfd = 4;  ///< stage, launcher, direct sandbox: pidfd of the engine.
inline constexpr int kHelperFd = 5;     ///< stage, launcher: the helper itself, for execveat.
inline constexpr int kWorkspaceTreeFd = 4;  ///< sandbox: detached mount of the workspace.
inline constexpr int kTmpTreeFd = 5;        ///< sandbox: detached mount of /tmp.
inline constexpr int kHostTreesFd = 6;      ///< sandbox: the first of those of host mounts.
inline constexpr int kMaxHostMounts = 64;   ///< Of a sandbox.

inline constexpr std::uint32_t kInsideUid = 1000;        ///< uid and gid inside a user namespace.
inline constexpr std::uint32_t kMaxMessage = 64 * 1024;  ///< Largest message, payload included.
inline constexpr int kMaxFds = 128;                      ///< Of one message.
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
  kHostMount,  ///< `detail` is the index of the mount.
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
  kMountStorage,
  kMountPts,
  kOwnNames,
  kAttachWorkspace,
  kAttachTmp,
  kAttachHostMounts,  ///< `detail` is the index of the entry.
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
  kTerminal,
  kExec,
  kOpenInside,
  kArm,  ///< The child that should have waited is not there.
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
inline constexpr std::uint32_t kViewTree = 16;      ///< kBind: `tree` is what to show, ready made.

// A record: this struct, then a, NUL, b, NUL, then padding to a multiple of 8. Every bind is
// nosuid, and nodev unless kViewDevice.
struct ViewEntry {
  ViewOp op;
  std::uint32_t flags;
  std::uint32_t mode;     ///< Permission bits of what is made.
  std::uint32_t bytes_a;  ///< Without the NUL.
  std::uint32_t bytes_b;  ///< Without the NUL.
  std::uint32_t tree;     ///< kViewTree: which of the message's descriptors, a detached mount.
};

enum class LauncherOp : std::uint32_t { kCreate = 1 };
enum class LauncherAnswer : std::uint32_t { kReady = 1, kFailed, kCreated, kCreateFailed, kDied };

inline constexpr char kHostMountReadOnly = 'r';
inline constexpr char kHostMountWritable = 'w';

// engine -> launcher. Descriptors: the init's socket; then, where they are no directories of the
// host, detached mounts of workspace and tmp; then what is to be shown, as the engine holds it.
// Strings: workspace, tmp (host paths); for each host mount a letter and its path, without links.
struct CreateRequest {
  LauncherOp op;
  std::uint32_t sequence;
  std::uint32_t uid;          ///< Host uid (and gid) of the sandbox; used with kLauncherRoot.
  std::uint32_t host_mounts;  ///< How many.
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

// ---- sandbox init: argv = {"palmshed-init", "sandbox"}, or {"palmshed-init", "direct", options},
// where options are letters:
inline constexpr char kDirectOwnNetwork = 'n';  ///< It has a network namespace: lo comes up.
inline constexpr char kDirectDropGroups = 'g';  ///< The engine is root.

inline constexpr std::uint32_t kInitLoopback = 1;     ///< Bring the namespace's lo up.
inline constexpr std::uint32_t kInitNoProc = 2;       ///< degraded: proc
inline constexpr std::uint32_t kInitSignalScope = 4;  ///< Landlock ABI >= 6: a scope per execution.
inline constexpr std::uint32_t kInitFiltered = 8;   ///< No namespaces: Landlock and seccomp alone.
inline constexpr std::uint32_t kInitDirect = 16;    ///< Has made its view from ViewPart messages.
inline constexpr std::uint32_t kInitOwnNames = 32;  ///< Put its uid into /etc/passwd and group.

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

enum class InitOp : std::uint32_t { kExec = 1, kKill, kOpen, kView, kConfig, kArm, kDisarm };
enum class InitAnswer : std::uint32_t { kReady = 1, kFailed, kEnded, kOpened, kArmed, kDisarmed };

// engine -> direct init, any number of them before its InitConfig: `entries` ViewEntry records
// follow. Descriptors: the detached mounts that they speak of. The view has /proc, /tmp and
// /workspace in it.
struct ViewPart {
  InitOp op;
  std::uint32_t entries;
};

// engine -> init. Descriptors: lock files, kept open as long as init lives. Then:
// `filter_instructions` sock_filter structs, then `host_mount_bytes` of ViewEntry records for the
// host mounts, then per rule a LandlockRule, path, NUL, padding to a multiple of 8.
struct InitConfig {
  InitOp op;
  std::uint32_t flags;
  std::uint32_t filter_instructions;
  std::uint32_t rules;
  std::uint32_t rlimit_count;
  std::uint32_t host_mounts;  ///< How many ViewEntry records.
  std::uint64_t host_mount_bytes;
  std::uint64_t handled_fs;  ///< 0 with handled_net and scoped 0: no Landlock.
  std::uint64_t handled_net;
  std::uint64_t scoped;
  std::uint64_t shm_bytes;      ///< Size of /dev/shm.
  std::uint64_t storage_bytes;  ///< Of a tmpfs that workspace and tmp are on; 0: as they came.
  std::uint64_t storage_inodes;
  Rlimit rlimits[kMaxRlimits];  ///< Set in each workload.
};

// Descriptors, in this order: stdin if kExecStdin, stdout, stderr, then a memfd holding the payload
// if kExecPayloadInFile. With kExecTerminal one socket takes the place of the first three
// (terminal.h).
inline constexpr std::uint32_t kExecStdin = 1;  ///< Else the sandbox's own /dev/null.
inline constexpr std::uint32_t kExecPayloadInFile = 2;
inline constexpr std::uint32_t kExecTerminal = 4;
inline constexpr std::uint32_t kExecWait = 8;     ///< It ends when all of its processes have.
inline constexpr std::uint32_t kExecDetach = 16;  ///< What its main process leaves stays.
inline constexpr int kMaxExecFds = 4;

// With `armed`, that child becomes the program or bears it (ArmRequest); else it is a new one.
// Limits of zero: none.
//
// Payload: `paths` strings (what to try to execute, in order, as execvp(3) would), `argc` strings,
// `envc` strings, then the working directory (absolute, inside).
struct ExecRequest {
  InitOp op;
  std::uint32_t sequence;  ///< Unique in the life of a sandbox, never 0.
  std::uint32_t flags;
  std::uint32_t armed;
  std::uint32_t paths;
  std::uint32_t argc;
  std::uint32_t envc;
  std::uint16_t terminal_rows;  ///< With kExecTerminal, as the next.
  std::uint16_t terminal_columns;
  std::uint64_t file_bytes;   ///< RLIMIT_FSIZE
  std::uint64_t cpu_seconds;  ///< RLIMIT_CPU
  std::uint64_t processes;    ///< RLIMIT_NPROC, without those of init.
  std::uint64_t payload_bytes;
};

/// What a waiting child does when its program comes.
enum class ChildRole : std::uint32_t {
  kBecomesProgram,
  kBearsProgram,  ///< One after another; the first of them only then.
  kBearsAtOnce,   ///< Each before it is wanted.
};

// kArm: makes a child that waits for its program, so that the engine can put it where its limits
// are enforced. The answer kArmed carries its pidfd, or the step that failed. kDisarm: ends it. The
// answer kDisarmed says that it is gone and has become no program, for whatever reason, perhaps
// with no kArmed before.
//
// Of a child that bears, kArmed carries a socket too: an ExecRequest that comes there reaches it
// without a detour over init. One that comes to init is passed on; the answer kEnded then carries
// the socket again, if the child waits again. When such a child is gone, what it was given and no
// kEnded has answered was never started.
struct ArmRequest {
  InitOp op;
  std::uint32_t sequence;  ///< Of the same count as those of executions.
  ChildRole role;
};

// Sends a signal to the main process of an execution, or to all of its processes. Unknown and ended
// executions are ignored.
struct KillRequest {
  InitOp op;
  std::uint32_t sequence;
  std::int32_t signal;
  std::uint32_t all;
  std::uint32_t armed;  ///< As of its ExecRequest.
};

enum class Inside : std::uint32_t {
  kWorkspace = 1,
  kSysvSegments,  ///< /proc/sysvipc/shm, which shows the segments of whoever opens it.
  kTcpSockets,    ///< /proc/net/tcp, those of the network namespace of whoever opens it.
  kTcp6Sockets,   ///< /proc/net/tcp6
};

// Asks for a descriptor of something that looks as it does inside only when it is opened there.
struct OpenRequest {
  InitOp op;
  std::uint32_t sequence;
  Inside what;
};

// Ends of steps in InitReply::stamps. kReady, where the others are ends of steps that set it up:
inline constexpr int kStampConfigured = 1;
inline constexpr int kStampViewMade = 9;  ///< In a sandbox that a launcher made with namespaces.
inline constexpr int kStampServing = 14;
// kEnded. The bearer of an execution does not know when its program was executed, a child that
// becomes one not when it was prepared.
inline constexpr int kStampReceived = 0;
inline constexpr int kStampPrepared = 1;
inline constexpr int kStampExecuted = 2;  ///< Or failed to be.
inline constexpr int kStampReaped = 3;    ///< With kExecWait, those that it had left too.
inline constexpr int kStampCleared = 4;   ///< What it had left is ended, or known.

enum class EndKind : std::uint32_t { kExited = 1, kStartupFailed };

// init -> engine. kOpened carries the descriptor (or step/sys_errno).
struct InitReply {
  InitAnswer answer;
  std::uint32_t sequence;
  Step step;  ///< kFailed; kEnded with kStartupFailed.
  std::int32_t sys_errno;
  std::uint32_t detail;  ///< kStartupFailed at kExec: 1 when a file of that name exists.
  EndKind kind;
  std::int32_t wait_status;
  std::uint32_t killed_leftovers;  ///< 1 when processes were left running and were killed.
  std::uint32_t waits_again;       ///< kEnded: 1 when the child that bore it waits for the next.
  std::uint32_t left_running;      ///< kEnded: 1 when there will be another answer, once what the
                                   ///< main process has left running is gone too.
  std::uint64_t cpu_ns;            ///< User and system time of the execution as far as reaped.
  std::uint64_t max_rss_bytes;     ///< Largest resident set of one process.
  std::uint64_t stamps[15];        ///< kReady, kEnded: as below; CLOCK_MONOTONIC ns, 0: not known.
};

static_assert(std::is_trivially_copyable_v<LauncherConfig> && sizeof(LauncherConfig) % 8 == 0);
static_assert(std::is_trivially_copyable_v<ViewEntry> && sizeof(ViewEntry) % 8 == 0);
static_assert(std::is_trivially_copyable_v<ViewPart> && sizeof(ViewPart) % 8 == 0);
static_assert(std::is_trivially_copyable_v<InitConfig> && sizeof(InitConfig) % 8 == 0);
static_assert(std::is_trivially_copyable_v<ExecRequest> && sizeof(ExecRequest) % 8 == 0);
static_assert(std::is_trivially_copyable_v<InitReply>);

}  // namespace palmshed::child
