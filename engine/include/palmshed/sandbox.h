// One sandbox: a workspace and the programs that run in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/execution.h"
#include "palmshed/export.h"
#include "palmshed/files.h"
#include "palmshed/options.h"
#include "palmshed/result.h"
#include "palmshed/streams.h"
#include "palmshed/units.h"

namespace palmshed {

namespace run {
class SandboxState;
}

inline namespace v1 {

/// The owner of a sandbox. Movable, not copyable; its methods may be called from any thread at the
/// same time. The destructor kills at once and never waits. After the engine is gone every call
/// answers BACKEND_LOST.
///
/// File paths are relative to the workspace. `..` that leaves it, absolute paths and symlinks that
/// resolve outside are FS_ERROR; FIFOs, sockets and devices are refused.
class PALMSHED_EXPORT Sandbox {
 public:
  /// Made by Engine::CreateSandbox.
  explicit Sandbox(std::shared_ptr<run::SandboxState> state);
  Sandbox(Sandbox&&) noexcept;
  Sandbox& operator=(Sandbox&&) noexcept;
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;
  ~Sandbox();

  /// `sbx_` and lower-case hex digits.
  std::string_view id() const;
  /// E.g. "native".
  std::string_view backend_name() const;
  /// What this backend can do on this host.
  Result<Capabilities> capabilities() const;

  /// Starts a program. `argv[0]` with a slash is a path (relative to the working directory), else
  /// it is looked up in the PATH of the execution. No shell is involved. A program that cannot be
  /// started is not an error of this call: the result says startup_failed.
  /// Errors: INVALID_OPTIONS (field named), UNSUPPORTED, FS_ERROR (work_dir), OVERLOADED,
  /// BACKEND_LOST.
  Result<Execution> Start(std::vector<std::string> argv, ExecOptions options = {});
  /// Starts `/bin/sh -c command`, the command unchanged. Over 131,071 bytes: INVALID_OPTIONS.
  Result<Execution> StartShell(std::string command, ExecOptions options = {});
  /// Start, then Wait.
  Result<ExecResult> Run(std::vector<std::string> argv, ExecOptions options = {},
                         std::stop_token stop = {});
  /// StartShell, then Wait.
  Result<ExecResult> RunShell(std::string command, ExecOptions options = {},
                              std::stop_token stop = {});

  /// The content of a regular file.
  Result<std::string> ReadFile(std::string_view path) const;
  /// Replaces a file atomically; missing parents are made. An executable mode is runnable at once.
  Result<void> WriteFile(std::string_view path, std::span<const std::byte> content,
                         std::uint32_t mode = 0644);
  /// As above, for text.
  Result<void> WriteFile(std::string_view path, std::string_view content,
                         std::uint32_t mode = 0644);
  /// Copies a host file or directory tree into the workspace. Links are copied as links when they
  /// stay inside, else FS_ERROR.
  Result<void> UploadFile(std::string_view host_path, std::string_view path);
  /// Copies a file of the workspace to the host; setuid and setgid bits are dropped.
  Result<void> DownloadFile(std::string_view path, std::string_view host_path) const;
  /// Extracts an archive into the directory `path`: tar, plain or compressed with gzip, xz or zstd,
  /// or zip. Files replace what has their name, each atomically; a directory that is there stays as
  /// it is, and never takes the place of a file or the reverse. No link on the way is followed. A
  /// directory `path` that does not exist appears complete or not at all; one that exists keeps
  /// what was extracted before an error. Entries that are absolute, contain `..`, or are a device,
  /// a FIFO or a socket, and links that lead out of the workspace or, hard ones, of `path`, are
  /// FS_ERROR, which names them. Of modes the permission bits are kept; the owner of a directory
  /// can always use it.
  /// Errors: as WriteFile, those of `source`, and FS_ERROR (field "archive") for what is no such
  /// archive, is damaged or encrypted, or uses another compression.
  Result<ArchiveSummary> UploadArchive(std::string_view path, ByteSource& source,
                                       ArchiveLimits limits = {});
  /// Writes everything below the directory `path` as a tar archive (ustar, with pax headers where
  /// these are needed). Links are recorded as links and not followed; FIFOs, sockets and devices
  /// are left out and counted. A file has the size that it had when its turn came: what is added
  /// later is left out, and one that gets shorter is FS_ERROR, after which what was written is no
  /// archive.
  Result<ArchiveSummary> DownloadArchive(std::string_view path, ByteSink& sink,
                                         ArchiveLimits limits = {}) const;
  /// Names in a directory, sorted bytewise.
  Result<std::vector<DirEntry>> List(std::string_view path) const;
  /// Facts about a path; a link is not followed.
  Result<FileStat> Stat(std::string_view path) const;
  /// Makes a directory and its missing parents.
  Result<void> MakeDirectory(std::string_view path, std::uint32_t mode = 0755);
  /// Removes a file, a link (not its target) or, when `recursive`, a tree.
  Result<void> Remove(std::string_view path, bool recursive = false);
  /// Renames within the workspace, replacing a file at the target.
  Result<void> Move(std::string_view from, std::string_view to);
  /// Sets permission bits; setuid, setgid and sticky are refused.
  Result<void> Chmod(std::string_view path, std::uint32_t mode);

  /// Waits up to `limit` until a program in the sandbox listens on TCP port `port`, on whatever
  /// address, IPv4 or IPv6. The kernel's table of sockets is looked at, more and more seldom up to
  /// every 50 ms; nobody connects.
  /// Errors: UNSUPPORTED for a sandbox that has no network of its own, since its ports would be the
  /// host's, or no /proc; OVERLOADED after `limit`; CONFLICT on a stop request, and in a callback;
  /// BACKEND_LOST when the sandbox goes meanwhile; INVALID_OPTIONS for port 0.
  Result<void> WaitForPort(std::uint16_t port, Millis limit, std::stop_token stop = {}) const;
  /// Where the time of its creation went and, once it is destroyed, that of its end.
  SandboxTimings timings() const;
  /// Ends everything and removes the files; live executions end as cancelled. Returns when nothing
  /// of the sandbox can run or be seen. Idempotent.
  Result<void> Destroy();

 private:
  std::shared_ptr<run::SandboxState> state_;
};

}  // namespace v1
}  // namespace palmshed
