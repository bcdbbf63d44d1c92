// A child that bears programs: the leaf of an execution always has a process in it, and what that
// makes is born there.
//
// Theory of operation. To put a process into a cgroup takes milliseconds when nobody has done so
// for a while. So the child that the engine puts into a leaf stays there. It is a copy of init,
// with memory of its own, but for its slot. It makes programs by vfork(2) with CLONE_PARENT: born
// in the leaf, and children of the slot's thread, as of any other execution. The first when it is
// wanted, since it would have to be put into the leaf too, or at once where there is no leaf; each
// later one when the one before has ended: it waits, with all done that can be done
// ahead, for a request on a socket of which the engine has the other end, so that nobody else need
// wake up. The descriptors of a request are never anybody else's. The slot hears of an execution
// when it has ended, or when there are orders for it.
//
// The bearer is held to the limits of the leaf, and may have to wait for a processor when the slot
// does not.
//
// With memory of its own the kernel's OOM killer may end it, and init not with it.
//
// It is in the slot's signal scope, and what it bears in one below, which cannot reach it: whatever
// ends its programs one by one leaves it alone. What ends everything in the slot's scope ends it
// too; then the engine asks for another. Without signal scopes nothing keeps a program from ending,
// or stopping, its bearer, so there each bears one program.
#pragma once

#include "child/failure.h"
#include "child/message.h"
#include "child/pool.h"

namespace palmshed::child {

/// Where /dev/null is among the descriptors of what is borne.
inline constexpr int kBorneNull = 5;

/// Slot's thread: makes the bearer that was asked for, and carries what it bears until it is dead.
void Bear(Slot* slot);

/// Leader, under the pool's lock: a request that came to init instead of the bearer, whose
/// descriptors are closed here then, unless it could not be passed on.
Failure PassOn(Slot* slot, const char* buffer, Message* message);

}  // namespace palmshed::child
