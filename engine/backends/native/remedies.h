// Why this host refused, and the exact command that changes it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "plan/plan.h"

namespace palmshed::backends::native {

/// The content of a file of /proc or /sys; nullopt when it cannot be read.
using ReadKernelFile = std::function<std::optional<std::string>(const std::string& path)>;

/// The real thing.
std::optional<std::string> ReadKernelFileFromHost(const std::string& path);

/// Explains a launcher or sandbox that could not be made. `failed.op` names the step.
plan::Offer::Missing ExplainRefusal(const Error& failed, const ReadKernelFile& read);

/// What sandboxes without namespaces lack, and how to get it: these were refused by `refused`.
Control NamespacesRefused(const Error& refused);

}  // namespace palmshed::backends::native
