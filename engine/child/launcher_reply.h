// What the launcher, or the supervisor in its place, answers the engine.
#pragma once

#include <cstdint>

#include "child/failure.h"
#include "child/message.h"
#include "child/wire.h"

namespace palmshed::child {

inline LauncherReply FailureReply(LauncherAnswer answer, std::uint32_t sequence,
                                  const Failure& failure) {
  LauncherReply reply{};
  reply.answer = answer;
  reply.sequence = sequence;
  reply.step = failure.step;
  reply.sys_errno = failure.sys_errno;
  reply.detail = failure.detail;
  return reply;
}

/// `reply` with a sandbox's pidfd, or, where that cannot go with it, that nothing was created: what
/// was ends with its socket, which the engine closes then. 0 or a negative errno.
inline long SendCreated(const LauncherReply& reply, int pidfd) {
  const long sent = SendMessage(kSocketFd, &reply, sizeof reply, pidfd);
  if (!TooManyUnderWay(sent)) return sent;
  const LauncherReply failed = FailureReply(LauncherAnswer::kCreateFailed, reply.sequence,
                                            FailureIf(sent, Step::kCloneSandbox));
  return SendMessage(kSocketFd, &failed, sizeof failed);
}

}  // namespace palmshed::child
