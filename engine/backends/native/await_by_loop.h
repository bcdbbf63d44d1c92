// Waiting where poll(2) fails, as it does in a process that may open no descriptor: the loop has
// epoll(7).
#pragma once

#include "base/loop.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::backends::native {

/// Until `fd` is readable. Not on the loop's thread.
Result<void> AwaitReadableByLoop(Loop& loop, BorrowedFd fd);
/// Until the other end of `socket`, which nobody else watches or reads, is closed. Answers that are
/// still under way go unheard, as those of the dead do.
Result<void> AwaitEndByLoop(Loop& loop, BorrowedFd socket);

}  // namespace palmshed::backends::native
