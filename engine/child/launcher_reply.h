// What the launcher, or the supervisor in its place, answers the engine.
#pragma once

#include <cstdint>

#include "child/failure.h"
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

}  // namespace palmshed::child
