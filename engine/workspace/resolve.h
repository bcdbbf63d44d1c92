// From paths to descriptors. Nothing here resolves a path first and opens it later: the kernel
// resolves beneath the root's descriptor while it opens (openat2(2), RESOLVE_BENEATH), and what is
// changed is the last component of a directory opened that way. A program that swaps directories
// and links meanwhile can make a call fail or act on another file of its own workspace, never
// outside it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "workspace/path.h"

namespace palmshed::workspace {

/// The uid, and gid, that what we make shall belong to; nullopt: whoever the kernel says.
using Owner = std::optional<std::uint32_t>;

/// A directory, and a name in it that may or may not exist.
struct Leaf {
  UniqueFd parent;  ///< May be an O_PATH descriptor.
  std::string name;
};

/// `cause`, from a system call, as the file API reports it: NOT_FOUND or FS_ERROR naming `path`;
/// OVERLOADED stays.
Error FileError(const Error& cause, const SandboxPath& path);
/// FS_ERROR: `path`, then `problem`.
Error FileError(const SandboxPath& path, std::string_view problem);

/// Opens what `path` leads to, links that stay inside followed.
Result<UniqueFd> OpenInside(BorrowedFd root, const SandboxPath& path, int flags);
/// The last component itself: a link there is not followed. FS_ERROR for the root and for "..".
Result<Leaf> OpenLeaf(BorrowedFd root, const SandboxPath& path);
/// Where a file of this path would be made: a link in the last place is followed for as long as it
/// stays inside, whether its target exists or not. Missing parents are made.
Result<Leaf> OpenLeafToWrite(BorrowedFd root, const Owner& owner, const SandboxPath& path);
/// Opens a directory (O_PATH), making what is missing of it; `mode` is for the last component, the
/// others get 0755. One that exists is left as it is.
Result<UniqueFd> OpenOrMakeDirectory(BorrowedFd root, const Owner& owner, const SandboxPath& path,
                                     mode_t mode);
/// Makes one directory, complete with owner and mode when its name appears. EEXIST comes back as
/// an Error with that errno.
Result<void> MakeOneDirectory(BorrowedFd parent, const std::string& name, const Owner& owner,
                              mode_t mode);
/// A name that nothing has, for what is not yet complete.
Result<std::string> TemporaryName();

}  // namespace palmshed::workspace
