// The three standard descriptors, whatever state the caller left them in.
#pragma once

namespace palmshed::cli {

/// Opens /dev/null in the place of each standard descriptor that is closed, so that none of ours
/// lands there and is mistaken for it. To be called before anything else is opened; false when
/// /dev/null cannot be opened.
[[nodiscard]] bool OpenMissingStdio();

}  // namespace palmshed::cli
