// What a test may not leave behind on the host.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace palmshed::tests {

/// Everything of this host that an engine could leave behind, apart from its directories.
struct Residue {
  std::set<std::string> mounts;
  std::set<std::string> ipc;         ///< SysV shared memory, semaphores and queues.
  std::set<std::string> cgroups;     ///< Those that carry our name.
  std::set<std::string> self_tests;  ///< Directories of theirs, in /tmp.

  static Residue Snapshot();
  /// What is there now and was not in `before`, in words. Groups in which something runs or whose
  /// sandbox has its lock held elsewhere, and directories that somebody holds, belong to other
  /// engines: whoever asks has none left.
  std::vector<std::string> Since(const Residue& before) const;
};

/// The groups of one sandbox and those below them, the longest paths first.
std::vector<std::string> GroupsOf(std::string_view sandbox);

/// Orphans below this process become its children from here on, so that Descendants() sees them.
void AdoptOrphans();
/// Live processes below this one, as "pid comm"; zombies of ours are reaped on the way.
std::vector<std::string> Descendants();
/// Everything in a directory, recursively, relative to it.
std::vector<std::string> TreeOf(const std::string& directory);

}  // namespace palmshed::tests
