// Host directories and files that a sandbox is to see (SandboxOptions::mounts).
//
// Theory of operation. A source is looked up once, without following links, and held by descriptor
// from then on: what was checked is what is shown, whatever becomes of the path. The launcher
// copies the mount tree at that path from its own view of the host, if it is the very file that is
// held (child/create.cc); init shows it in a root of its own (child/host_mounts.cc).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/native/view.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/options.h"

namespace palmshed::backends::native {

struct HostMount {
  Mount mount{};      ///< Its source without links, "." and "..".
  UniqueFd source{};  ///< O_PATH
  bool directory = false;
};

/// INVALID_OPTIONS naming the source that is missing or may not be opened, is a link or goes
/// through one, is neither directory nor regular file, is a directory of the system, or holds, or
/// is within, one of `private_paths` (state_paths.h). What is no fault of the source is a system
/// error.
Result<std::vector<HostMount>> HoldMounts(const std::vector<Mount>& mounts,
                                          std::span<const std::string> private_paths);

/// The view of a sandbox with those mounts: what is read-only may be read and executed.
View WithHostMounts(View view, std::span<const HostMount> mounts);

/// The launcher's or init's refusal, in the caller's terms; other errors as they are.
Error ExplainHostMount(Error error);

}  // namespace palmshed::backends::native
