// The file tree that sandboxes see, built from the engine's records: once by the launcher for all
// of its sandboxes, or by the init of a direct sandbox for itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "child/failure.h"
#include "child/view_path.h"

namespace palmshed::child {

/// The launcher's two mount namespaces: the host's tree, from which workspaces are fetched, and the
/// view, in which it stands and of which every sandbox gets a copy.
struct View {
  int host_namespace = -1;
  int namespace_fd = -1;
  int proc = -1;          ///< A directory of procfs.
  bool own_proc = false;  ///< `proc` shows the launcher's pid namespace, else the host's.
};

/// The root that is being filled.
struct BuildRoot {
  int fd = -1;
  bool own = true;  ///< The tmpfs made for it, not a tree that took its place.
  PlaceInView place;
};

/// What a view is made of: `count` ViewEntry records as they came, and the descriptors that came
/// with them. Each of those that a record speaks of is closed on the way.
struct ViewRecords {
  const void* bytes = nullptr;
  std::size_t size = 0;
  std::uint32_t count = 0;
  const int* trees = nullptr;
  int tree_count = 0;
};

/// Leaves the caller in the view, with the host's tree unreachable but through `host_namespace`.
Failure BuildView(const ViewRecords& source, View* view);

/// Makes the caller's own mount namespace the view, for nobody else, as its records come in. The
/// namespace must have come with a user namespace: then nothing of it gets back to the host.
class OwnView {
 public:
  Failure Begin();
  Failure Add(const ViewRecords& source);
  /// Leaves the caller in it; the host's tree is gone from the namespace.
  Failure Finish();

 private:
  BuildRoot root_;
};

}  // namespace palmshed::child
