// Files that have no name any more and still take room, because a process holds on to them
// (unlink(2)).
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <functional>

namespace palmshed::kernel {

/// Shows every regular file without a name that a process below `ancestor` has open or, as far as
/// this process may see that, mapped; possibly more than once. What cannot be looked into is left
/// out: an ordinary user sees neither the descriptors of a process that made itself undumpable
/// (prctl(2)) nor files that are only mapped; nobody sees descriptors under way in a socket.
void ForEachDeletedFile(pid_t ancestor, const std::function<void(const struct stat&)>& show);

}  // namespace palmshed::kernel
