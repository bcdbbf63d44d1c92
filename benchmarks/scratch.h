// Files of a benchmark that must not outlive it.
#pragma once

#include <string>

namespace palmshed::benchmarks {

/// A new directory, below $TMPDIR or /tmp. It is removed when the process exits, also by `Die`.
std::string ScratchDirectory();

}  // namespace palmshed::benchmarks
