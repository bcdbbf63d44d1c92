// The protocol's lines: requests from standard input, answers to standard output.
#pragma once

namespace palmshed::conformance {

/// Answers until a shutdown or the end of input; the exit code of the program. Every request has a
/// thread of its own, since many of them wait; their answers come in the order in which they are
/// ready.
int Serve();

}  // namespace palmshed::conformance
