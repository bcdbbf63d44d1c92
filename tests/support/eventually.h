// Waiting for something that has no descriptor to wait on.
#pragma once

#include <chrono>
#include <functional>

namespace palmshed::tests {

/// True as soon as `condition` holds; false when it still does not after `deadline`.
bool Eventually(const std::function<bool()>& condition,
                std::chrono::milliseconds deadline = std::chrono::seconds(10));

}  // namespace palmshed::tests
