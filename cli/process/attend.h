// Everything that happens while the program runs, on one thread.
#pragma once

#include "cli/process/input_feed.h"
#include "cli/process/output_writer.h"
#include "cli/process/stop_signals.h"
#include "cli/process/window.h"
#include "palmshed/error.h"
#include "palmshed/execution.h"

namespace palmshed::cli {

/// Returns when `execution` has ended. Feeds it from `input` (null: it has no input), gives its
/// terminal the size of ours (`window` null: it has none), and cancels it when a signal asks us to
/// stop or when its output can no longer be delivered.
Result<void> Attend(Execution& execution, const StopSignals& signals, const OutputWriter& output,
                    InputFeed* input, const WindowChanges* window);

}  // namespace palmshed::cli
