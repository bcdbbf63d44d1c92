// SANDBOX_LOG=debug: the engine's events on standard error.
#pragma once

#include <functional>
#include <string>

#include "palmshed/events.h"

namespace palmshed::cli {

/// One line: "palmshed: event exec.start time=... sandbox=sbx_... execution=exec_... key=value".
std::string FormatEvent(const Event& event);

/// The observer that SANDBOX_LOG asks for, or none. It never waits for a reader of standard error:
/// the engine's thread calls it. What could not be written is counted in a later line.
std::function<void(const Event&)> EventObserver();

}  // namespace palmshed::cli
