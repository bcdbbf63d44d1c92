// Detached mounts: what open_tree(2) copies and move_mount(2) attaches.
#pragma once

#include <cstdint>

namespace palmshed::child {

/// move_mount(2) of a detached tree onto `target` (below `directory` when relative; empty: onto
/// what `directory` has open, an O_PATH descriptor will do). 0 or a negative errno.
long AttachTree(int tree, int directory, const char* target);

/// open_tree(2): a detached copy of what is at `path`, without set-user-ID programs and devices
/// (the latter unless `flags`, as of ViewEntry, say so), out of reach of the host's later mounts.
/// The descriptor or a negative errno.
long CopyTree(const char* path, std::uint32_t flags);
/// The same of what a descriptor of this mount namespace has open; O_PATH will do.
long CopyTree(int fd, std::uint32_t flags);

}  // namespace palmshed::child
