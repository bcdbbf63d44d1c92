// Links that appear complete, and take the place of what has their name.
#pragma once

#include <string>

#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "workspace/resolve.h"

namespace palmshed::workspace {

/// A symbolic link `name` in `dir` to `target`, as it is written.
Result<void> PutSymlink(const std::string& target, BorrowedFd dir, const std::string& name,
                        const Owner& owner);
/// A second name for the regular file `old_name` of `old_dir`. ELOOP when it is no such file.
Result<void> PutHardLink(BorrowedFd old_dir, const std::string& old_name, BorrowedFd dir,
                         const std::string& name);

}  // namespace palmshed::workspace
