// The stamps of the helper as steps of what the engine asked it for.
#pragma once

#include "base/laps.h"
#include "child/wire.h"

namespace palmshed::backends::native {

/// Adds the steps of init, up to now, of which `ready` has told: init, view, confine, serve, ready.
void AddInitSteps(const child::InitReply& ready, Laps& laps);
/// Adds the steps of an execution, up to now, of which `ended` has told: send, prepare, exec, run,
/// descendants, report. What did not take place has none.
void AddExecSteps(const child::InitReply& ended, Laps& laps);

}  // namespace palmshed::backends::native
