// The loopback interface of a network namespace.
#pragma once

namespace palmshed::child {

/// Brings `lo` up in the caller's network namespace, unless it is up; 0 or a negative errno.
long BringLoopbackUp();

}  // namespace palmshed::child
