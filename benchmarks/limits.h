// What the measured ratios must not exceed.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "benchmarks/report.h"

namespace palmshed::benchmarks {

/// One sentence for each ratio that is worse than its limit beyond doubt: its whole 95 % interval
/// lies above. That interval is the margin for noise. It comes from the scatter of the same run, so
/// a busy machine widens it instead of failing, and more rounds make it narrower. A limit whose
/// variant was not measured, or that nothing checked, is an excess as well, unless this host cannot
/// run it.
std::vector<std::string> Excesses(std::span<const LatencyTable> tables);

/// True when others used the machine so much that an excess says nothing about us: in some table
/// the median of the floor, a single exec, is far above its tenth percentile. What has many steps
/// suffers more from that than what has one, in every round, and no interval shows it.
bool TooBusy(std::span<const LatencyTable> tables);

}  // namespace palmshed::benchmarks
