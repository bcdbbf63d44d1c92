// How many runs a second some workers do at the same time.
#pragma once

#include <chrono>
#include <vector>

#include "benchmarks/peers.h"
#include "benchmarks/report.h"
#include "benchmarks/statistics.h"

namespace palmshed::benchmarks {

/// Each block runs one variant with one number of workers for `block`; blocks come in random order,
/// `rounds` times, and the median of the rounds is reported.
std::vector<ThroughputRow> MeasureThroughput(const Programs& programs, const Peers& peers,
                                             std::chrono::milliseconds block, int rounds,
                                             Random& random);

}  // namespace palmshed::benchmarks
