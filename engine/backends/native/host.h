// What the backend finds out about this host once, before the first sandbox.
#pragma once

#include <cstdint>
#include <future>
#include <optional>

#include "backends/native/runtimes.h"
#include "backends/native/state_paths.h"
#include "backends/native/uid_lease.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/options.h"

namespace palmshed::backends::native {

struct Host {
  bool root = false;          ///< The engine may give sandboxes uids of their own.
  bool extra_groups = false;  ///< The engine's user is in groups that sandboxes would keep.
  std::optional<std::uint32_t> spare_gid{};  ///< One of that user's, by which they can be dropped.
  int landlock_abi = 0;                      ///< 0: no Landlock.
  HostEnvironment environment{};             ///< That decided where those are.
  HostDirectories directories{};             ///< Of state and workspaces.
  UidRange uids{};                           ///< With `root`.
  UniqueFd helper{};                         ///< The helper program, ready to execute.
  /// Programs outside /usr. Looked for when first asked for, by which time a launcher is starting.
  std::shared_future<Runtimes> runtimes{};
};

/// FS_ERROR for directories, UNSUPPORTED where the helper cannot be executed or no uid is free,
/// OVERLOADED where something has run out.
Result<Host> DiscoverHost(const EngineOptions& options);

/// The helper program in a sealed memfd; where the kernel refuses to execute those
/// (vm.memfd_noexec=2), in an unlinked file of `directory`. UNSUPPORTED where neither works,
/// OVERLOADED where something has run out, FS_ERROR where the file cannot be made.
Result<UniqueFd> MakeHelper(const std::string& directory);

}  // namespace palmshed::backends::native
