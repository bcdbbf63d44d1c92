// A representative job, with a sandbox and without.
#pragma once

#include <vector>

#include "benchmarks/schedule.h"
#include "palmshed/palmshed.h"

namespace palmshed::benchmarks {

/// 1 KiB is written into a file, an interpreter is started that copies it, and the copy is read
/// back: once in `sandbox`, which must outlive the variants, and once without. None where there is
/// no interpreter.
std::vector<Variant> WorkloadVariants(Sandbox& sandbox);

}  // namespace palmshed::benchmarks
