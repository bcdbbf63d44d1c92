// The self-test of host mounts: a file of the host's is shown twice, read-only and not.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/options.h"
#include "run/sandbox.h"

namespace palmshed::run {

using MakeMounted = std::function<Result<std::shared_ptr<SandboxState>>(std::vector<Mount>)>;

/// Works when the file can be read, be written to where that was asked for, and not where not.
Control TestMounts(const MakeMounted& make, std::span<const std::byte> probe);

}  // namespace palmshed::run
