// How many processors there are for the programs in sandboxes.
#pragma once

namespace palmshed {

/// Processors that are online, at least one. Not those that this process is bound to: programs are
/// not (child/inherited.h). Reads a file, which takes some 20 us.
unsigned OnlineProcessors();

}  // namespace palmshed
