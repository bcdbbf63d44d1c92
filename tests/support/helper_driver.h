// Drives the helper program directly over its sockets, as the engine does, for tests that want to
// see what the helper itself does. Every wait has a deadline.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "child/wire.h"

namespace palmshed::testing {

inline constexpr int kDeadlineMs = 20'000;
inline constexpr std::uint32_t kSandboxUids = 1000;
/// The uids that a launcher of root hands out, and whom a privileged test stands in for as "an
/// ordinary user". Without accounts, and each test program's own: quotas are counted by uid.
std::uint32_t FirstSandboxUid();
std::uint32_t OrdinaryUid();

/// A directory that goes with everything in it; made in $TMPDIR, else /tmp.
class TempDirectory {
 public:
  TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  ~TempDirectory();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The records of a LauncherConfig.
class ViewRecords {
 public:
  ViewRecords& Directory(const std::string& path, std::uint32_t mode = 0755);
  ViewRecords& File(const std::string& path, const std::string& content, std::uint32_t mode = 0644);
  ViewRecords& Symlink(const std::string& path, const std::string& target);
  ViewRecords& Bind(const std::string& path, const std::string& source, std::uint32_t flags = 0);
  ViewRecords& Proc(const std::string& path);
  std::vector<char> Message(std::uint32_t launcher_flags) const;

 private:
  void Add(child::ViewOp op, std::uint32_t flags, std::uint32_t mode, const std::string& a,
           const std::string& b);

  std::uint32_t count_ = 0;
  std::vector<char> bytes_;
};

/// /usr and its links, /etc/passwd, device files, the directories that init mounts on.
ViewRecords MinimalView();

/// Bytes received with their descriptors; empty at the end of the stream or the deadline.
struct ReceivedMessage {
  std::vector<char> bytes;
  std::vector<UniqueFd> fds;
};
ReceivedMessage ReceiveWithDeadline(BorrowedFd socket, int timeout_ms = kDeadlineMs);

struct LauncherOptions {
  bool root = true;               ///< Otherwise as an ordinary user.
  std::uint32_t flags = 0;        ///< kLauncher..., beside those that follow from `root`.
  std::uint32_t stage_flags = 0;  ///< kStage..., likewise.
  std::string helper{};           ///< Path of another build of the helper.
  ViewRecords view = MinimalView();
  std::uint64_t max_processes = 0;  ///< RLIMIT_NPROC; 0: as it is.
  void (*before_exec)() = nullptr;  ///< Run in the child that becomes the stage.
};

/// A started launcher. Ends with this object: the sockets close, the kernel does the rest.
class LauncherProcess {
 public:
  explicit LauncherProcess(LauncherOptions options);
  LauncherProcess(const LauncherProcess&) = delete;
  LauncherProcess& operator=(const LauncherProcess&) = delete;
  ~LauncherProcess();

  /// The first answer: kReady or kFailed; nullopt when it died.
  const std::optional<child::LauncherReply>& ready() const { return ready_; }
  pid_t stage() const { return stage_; }
  BorrowedFd socket() const { return socket_.get(); }
  bool root() const { return options_.root; }
  std::uint32_t NextSandboxUid();
  std::optional<child::LauncherReply> Receive(UniqueFd* fd = nullptr, int timeout_ms = kDeadlineMs);

 private:
  void Start();

  LauncherOptions options_;
  UniqueFd socket_;
  pid_t stage_ = -1;
  std::uint32_t next_uid_ = FirstSandboxUid();
  std::optional<child::LauncherReply> ready_;
};

struct LandlockRuleText {
  std::uint64_t access;
  std::string path;
  bool optional = false;
};

/// Whether this kernel has Landlock's signal scope (ABI 6, Linux 6.12).
bool HasSignalScope();
/// The loopback, and a signal scope where there is one.
std::uint32_t UsualInitFlags();

struct SandboxSpec {
  std::uint32_t flags = UsualInitFlags();
  std::vector<child::Rlimit> rlimits{};
  std::vector<LandlockRuleText> rules{};
  std::uint64_t handled_fs = 0;
  bool filter = true;       ///< A filter that allows everything.
  std::string workspace{};  ///< Other than the sandbox's own directory.
  std::vector<BorrowedFd> locks{};
  std::uint32_t host_uid = 0;  ///< Other than the next of the launcher's range.
};

struct ExecSpec {
  std::vector<std::string> argv;
  std::vector<std::string> env{"PATH=/usr/bin:/bin"};
  std::vector<std::string> paths{};  ///< Empty: argv[0].
  std::string directory = "/workspace";
  bool stdin_pipe = false;
  bool payload_in_file = false;
  bool terminal = false;    ///< One that is sent to a pipe, which cannot take it.
  std::uint32_t armed = 0;  ///< The child that is to become the program, or to bear it.
  BorrowedFd socket = -1;   ///< Of that child; else it is sent to init.
  std::uint64_t processes = 0;
  std::uint64_t file_bytes = 0;
};

/// A child that waits for its program.
struct Armed {
  std::uint32_t sequence = 0;
  UniqueFd pidfd;   ///< Not valid: none could be had.
  UniqueFd socket;  ///< Of one that bears.
};

/// An execution that was asked for.
struct Started {
  std::uint32_t sequence = 0;
  UniqueFd in;
  UniqueFd out;
  UniqueFd err;
};

/// What init answered, and a descriptor if there was one.
struct Answer {
  child::InitReply reply{};
  UniqueFd fd;
};

struct Finished {
  child::InitReply reply{};
  UniqueFd socket;  ///< Of what bore it, if it came back.
  std::string out;
  std::string err;

  bool exited_with(int code) const;
  bool killed_by(int signal) const;
  bool failed_at(child::Step step, int sys_errno) const;
};

/// A sandbox and the engine's end of its socket. Killed with this object.
class TestSandbox {
 public:
  TestSandbox(LauncherProcess* launcher, const SandboxSpec& spec);
  TestSandbox(const TestSandbox&) = delete;
  TestSandbox& operator=(const TestSandbox&) = delete;
  ~TestSandbox();

  /// What the launcher and init answered; nullopt when they did not.
  const std::optional<child::LauncherReply>& created() const { return created_; }
  const std::optional<child::InitReply>& ready() const { return ready_; }
  bool ok() const;
  std::string why_not() const;

  const std::string& workspace() const { return workspace_; }
  std::uint32_t uid() const { return uid_; }
  BorrowedFd init_pidfd() const { return init_pidfd_.get(); }
  BorrowedFd socket() const { return socket_.get(); }
  void CloseSocket() { socket_.reset(); }
  pid_t init_pid() const;

  /// `bend` may spoil the request before it is sent.
  Started Start(const ExecSpec& spec, void (*bend)(child::ExecRequest*) = nullptr);
  void Kill(std::uint32_t sequence, int signal, bool all, std::uint32_t armed = 0);
  Armed Arm(child::ChildRole role = child::ChildRole::kBecomesProgram);
  void Disarm(const Armed& armed);
  UniqueFd OpenWorkspace();
  /// Waits for the answer to one execution; those to others are kept.
  std::optional<child::InitReply> WaitEnd(std::uint32_t sequence, int timeout_ms = kDeadlineMs);
  /// Waits until init says that such a child is gone.
  bool WaitDisarmed(std::uint32_t armed);
  /// The first answer to one of both.
  std::optional<Answer> WaitAnswer(std::uint32_t one, std::uint32_t other,
                                   int timeout_ms = kDeadlineMs);
  Finished Finish(Started* started);
  Finished Run(const ExecSpec& spec);
  Finished Shell(const std::string& command);
  /// Writes a file into the workspace, owned by the sandbox.
  void WriteFile(const std::string& name, const std::string& content, mode_t mode = 0755);

 private:
  void SendConfig(const SandboxSpec& spec);
  void Create(const SandboxSpec& spec, UniqueFd init_socket);

  LauncherProcess* launcher_;
  TempDirectory directory_;
  std::string workspace_;
  std::uint32_t uid_;
  std::uint32_t next_sequence_ = 1;
  UniqueFd socket_;
  UniqueFd init_pidfd_;
  std::optional<child::LauncherReply> created_;
  std::optional<child::InitReply> ready_;
  std::vector<Answer> kept_;
};

/// Reads until `text` has been seen, or the end, or the deadline.
std::string ReadUntil(BorrowedFd fd, const std::string& text, int timeout_ms = kDeadlineMs);
std::string FileContent(const std::string& path);
std::string ReadAll(BorrowedFd fd, int timeout_ms = kDeadlineMs);
/// Whether `fd` is readable within the time.
bool IsReadable(BorrowedFd fd, int timeout_ms);
/// The process behind a pidfd, in our pid namespace; -1 when it is gone.
pid_t PidOf(BorrowedFd pidfd);
/// All descendants of a process, itself not included, in our pid namespace, parents first.
std::vector<pid_t> DescendantsOf(pid_t pid);
/// Looks again until there are `expected`: a process that only passes the baton may take a moment
/// to go. Fewer or more when they never were.
std::vector<pid_t> SettledDescendantsOf(pid_t pid, std::size_t expected);

}  // namespace palmshed::testing
