// What a sandbox has of its own on the host before it runs: a uid, as root, and a directory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/native/host.h"
#include "backends/native/state.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "workspace/resolve.h"

namespace palmshed::backends::native {

struct Place {
  workspace::Owner owner{};
  UniqueFd uid_lock{};
  std::optional<SandboxHome> home{};
  UniqueFd home_lock{};

  /// Descriptors that init holds for as long as it lives.
  std::vector<BorrowedFd> Locks() const;
};

/// A place with an owner: a uid that nobody else has, or nobody where the engine is no root.
Result<Place> TakeUid(const Host& host);
/// Gives it a directory. The caller removes that again if no sandbox comes of it.
Result<void> MakeHome(const Host& host, const std::string& id, Place& place);

}  // namespace palmshed::backends::native
