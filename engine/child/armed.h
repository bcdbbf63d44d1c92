// Children that wait for their program.
//
// Theory of operation. To put a process into a cgroup takes milliseconds when nobody has done so
// for a while, so an execution with limits finds its process there already. The engine asks for a
// child to be armed; a slot vforks it and sleeps, as it does for every execution; the child sends
// its pidfd and waits. The engine puts it where its limits are enforced. When the program comes,
// whoever leads hands the request over and wakes the child, which becomes the program.
//
// This child is for one program. One that bears program after program (bearer.h) is attached once.
//
// It has to be a vfork child: it shares init's memory, and the kernel's OOM killer passes over a
// process whose parent waits in vfork, where it would take init along with any other. It shares
// init's descriptors too, so that it has those that arrive later, and takes a copy before it
// becomes the program.
#pragma once

#include <cstdint>

#include "child/failure.h"
#include "child/message.h"
#include "child/pool.h"
#include "child/wire.h"

namespace palmshed::child {

/// Leader: the slot will carry a waiting child.
void RegisterArming(Slot* slot, const ArmRequest& request);

/// Slot's thread: makes the child and sleeps until it is something else. kSuccess: it became the
/// program, or has died on the way. False: there is no execution.
bool AwaitProgram(Slot* slot, Failure* failure);

/// Leader: gives the request, which came at `received_ns`, to the child it is meant for.
Failure HandOver(Pool* pool, const ExecRequest& request, const char* buffer, Message* message,
                 std::uint64_t received_ns);

/// Answers that no child can wait, and why.
void SendNotArmed(std::uint32_t sequence, const Failure& failure);

/// A child, of itself: answers that it waits; what a bearer is given goes through `socket`. Where
/// the descriptors cannot go, now, it answers so instead, and ends.
void SendArmed(std::uint32_t sequence, int pidfd, int socket = -1);

/// Answers that a waiting child is gone.
void SendDisarmed(std::uint32_t sequence);

/// Leader: ends a waiting child. Unknown ones are ignored.
void Disarm(Pool* pool, std::uint32_t sequence);

}  // namespace palmshed::child
