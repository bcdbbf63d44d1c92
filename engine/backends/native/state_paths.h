// Where things live on the host.
//
//   state (locks, sockets)   root: /run/palmshed      user: $XDG_RUNTIME_DIR/palmshed
//   workspaces               root: /var/lib/palmshed  user: $XDG_STATE_HOME/palmshed
//
// Where a user's directory is not set, or is not that user's own, a private directory beneath the
// temporary directory takes its place: palmshed-<uid>. Nothing is ever kept in a directory that
// somebody else owns or may write to.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::backends::native {

/// What decides where things live. Tests make their own.
struct HostEnvironment {
  uid_t uid = 0;                 ///< Effective user.
  std::string run = "/run";      ///< State of root.
  std::string lib = "/var/lib";  ///< Workspaces of root.
  std::string runtime_home{};    ///< $XDG_RUNTIME_DIR
  std::string state_home{};      ///< $XDG_STATE_HOME
  std::string temporary = "/tmp";
};

/// Of this process. The only place that reads these variables.
HostEnvironment ReadHostEnvironment();

/// A directory that is ours alone, opened for reading.
struct HostDirectory {
  UniqueFd fd;
  std::string path;  ///< Absolute.
};

/// The directories of an engine.
struct HostDirectories {
  HostDirectory state;
  HostDirectory workspaces;
};

/// Finds and opens them; what is missing is made, mode 0700, parents too. `workspace_root`
/// (EngineOptions) wins over the rule; one that exists keeps its mode. FS_ERROR with a remedy when
/// one belongs to somebody else or others may write to it.
Result<HostDirectories> OpenHostDirectories(const HostEnvironment& host,
                                            const std::string& workspace_root);

/// What no sandbox may be shown: those directories, and where other engines of this host, root's
/// and this user's, keep theirs by the rule. As the kernel calls them (sys::PathOf): they can be
/// compared with other paths of its. What a self-test saw is kept in the state as well.
Result<std::vector<std::string>> PrivatePaths(const HostEnvironment& host,
                                              const HostDirectories& directories);

/// Where those are, or would be. Makes nothing, and promises nothing about what is there.
std::string StatePath(const HostEnvironment& host);
std::string WorkspacesPath(const HostEnvironment& host, const std::string& workspace_root);

}  // namespace palmshed::backends::native
