// The engine's end of a launcher: starts it, asks it for sandboxes, sees it end.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "backends/native/host_mounts.h"
#include "base/loop.h"
#include "base/unique_fd.h"
#include "child/wire.h"
#include "palmshed/error.h"

namespace palmshed::backends::native {

/// The records of a view; see child/wire.h.
struct EncodedView {
  std::uint32_t entries = 0;
  std::vector<std::byte> records{};
};

/// How a launcher is set up; see child/wire.h.
struct LauncherSetup {
  std::string uid_map{};
  std::string gid_map{};
  std::uint32_t stage_flags = 0;
  std::uint32_t launcher_flags = 0;
  /// Called when the process has been started: starting takes as long as looking for what to show.
  std::function<EncodedView()> view{};
};

/// A sandbox to be made. `socket` is init's end, with its first message already in.
struct LaunchRequest {
  std::string workspace;
  std::string tmp;
  std::uint32_t uid = 0;
  BorrowedFd socket = -1;
  /// Detached mounts instead of those directories; both or neither.
  BorrowedFd workspace_tree = -1;
  BorrowedFd tmp_tree = -1;
  std::span<const HostMount> mounts{};
};

/// One launcher process. Any thread; requests are served one after another.
class Launcher {
 public:
  /// Starts it from the loop's thread, which its parent-death signal follows (prctl(2)), and waits
  /// until it is ready. The error's `op` names the step that failed.
  static Result<std::unique_ptr<Launcher>> Start(Loop& loop, BorrowedFd helper,
                                                 const LauncherSetup& setup);
  ~Launcher();  ///< Ends it and everything it made; waits.
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  /// Makes a sandbox; returns the pidfd of its init. BACKEND_LOST when the launcher is gone.
  Result<UniqueFd> Launch(const LaunchRequest& request);
  bool gone() const;

 private:
  Launcher(UniqueFd socket, pid_t stage) : socket_(std::move(socket)), stage_(stage) {}
  Result<UniqueFd> AwaitReply(std::uint32_t sequence);

  UniqueFd socket_;
  pid_t stage_;
  mutable std::mutex mu_;
  std::uint32_t sequence_ = 0;
  bool gone_ = false;
};

/// Whether a message could not be sent because the helper has died, and the loop has not seen it
/// yet; or whoever else had the other end.
bool IsHangUp(const Error& error);
/// An Error for a step of the helper that failed; OVERLOADED whatever `code` says where something
/// has run out for a moment.
Error StepError(ErrorCode code, child::Step step, int sys_errno, std::uint32_t detail);

}  // namespace palmshed::backends::native
