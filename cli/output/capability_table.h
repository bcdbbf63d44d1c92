// `doctor` for people.
#pragma once

#include <string>

#include "palmshed/capabilities.h"

namespace palmshed::cli {

/// True when the controls that keep a program in its sandbox work: file view and network.
bool IsolationWorks(const Capabilities& capabilities);

/// Every control with what its test saw and, where it does not work, what is lost and how to enable
/// it.
std::string FormatCapabilities(const Capabilities& capabilities);

}  // namespace palmshed::cli
