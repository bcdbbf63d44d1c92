// The native Linux backend.
#pragma once

#include <memory>

#include "backends/backend.h"

namespace palmshed::backends::native {

std::unique_ptr<Backend> MakeNativeBackend(const BackendContext& context);

}  // namespace palmshed::backends::native
