#include "workspace/new_link.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <expected>
#include <string>

#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "workspace/resolve.h"

namespace palmshed::workspace {

Result<void> PutSymlink(const std::string& target, BorrowedFd dir, const std::string& name,
                        const Owner& owner) {
  PALMSHED_TRY(const std::string temporary, TemporaryName());
  PALMSHED_TRY_VOID(sys::SymlinkAt(target, dir, temporary));
  auto published = [&]() -> Result<void> {
    if (owner) PALMSHED_TRY_VOID(sys::LchownAt(dir, temporary, *owner, *owner));
    return sys::RenameAt(dir, temporary, dir, name);
  }();
  // The failure to report is the first one.
  if (!published) (void)sys::UnlinkAt(dir, temporary);
  return published;
}

Result<void> PutHardLink(BorrowedFd old_dir, const std::string& old_name, BorrowedFd dir,
                         const std::string& name) {
  PALMSHED_TRY(const std::string temporary, TemporaryName());
  PALMSHED_TRY_VOID(sys::LinkAt(old_dir, old_name, dir, temporary));
  auto published = [&]() -> Result<void> {
    // Looked at only now: before, the program could have put something else in its place.
    PALMSHED_TRY(const struct stat st, sys::FstatAt(dir, temporary, AT_SYMLINK_NOFOLLOW));
    if (!S_ISREG(st.st_mode)) return std::unexpected(SysError("linkat", ELOOP, old_name));
    return sys::RenameAt(dir, temporary, dir, name);
  }();
  // Also after success: a rename from one name of a file to another of its names does nothing.
  (void)sys::UnlinkAt(dir, temporary);
  return published;
}

}  // namespace palmshed::workspace
