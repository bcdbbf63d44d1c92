// Which errors a system call can be made to answer.
#pragma once

#include <span>
#include <string>

#include "faults/course.h"

namespace palmshed::tests {

/// What its man page names and what can happen to a correct caller; none for calls that are only
/// counted, or that cannot fail with such arguments.
std::span<const int> ErrorsOf(const Call& call);
/// Whether somebody has thought about what it can answer.
bool IsKnown(long call);
/// E.g. "openat"; its number where this program has no name for it.
std::string NameOf(long call);

}  // namespace palmshed::tests
