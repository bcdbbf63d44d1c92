// The file tree that sandboxes see, built once by the launcher from the engine's records.
#pragma once

#include <cstddef>
#include <cstdint>

#include "child/failure.h"

namespace palmshed::child {

/// The launcher's two mount namespaces: the host's tree, from which workspaces are fetched, and the
/// view, in which it stands and of which every sandbox gets a copy.
struct View {
  int host_namespace = -1;
  int namespace_fd = -1;
  int proc = -1;          ///< A directory of procfs.
  bool own_proc = false;  ///< `proc` shows the launcher's pid namespace, else the host's.
};

/// Leaves the caller in the view, with the host's tree unreachable but through `host_namespace`.
/// `records` are `count` ViewEntry records as they came.
Failure BuildView(const void* records, std::size_t bytes, std::uint32_t count, View* view);

/// move_mount(2) of a detached tree onto a directory or file given by path.
long AttachTree(int tree, const char* target);

/// open_tree(2): a detached copy of what is at `path`, without set-user-ID programs and devices
/// (the latter unless `flags`, as of ViewEntry, say so), out of reach of the host's later mounts.
long CopyTree(const char* path, std::uint32_t flags);

}  // namespace palmshed::child
