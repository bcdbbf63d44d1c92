#include "run/conclude.h"

#include <sys/wait.h>

#include "backends/backend.h"
#include "palmshed/result.h"

namespace palmshed::run {
namespace {

void ConcludeExited(int wait_status, ExecResult& result) {
  if (WIFEXITED(wait_status)) {
    result.exit_code = WEXITSTATUS(wait_status);
    result.status = result.exit_code == 0 ? Status::kCompleted : Status::kFailed;
    result.termination.cause = Cause::kExited;
    return;
  }
  result.exit_code = 128 + WTERMSIG(wait_status);
  result.status = Status::kFailed;
  result.termination.cause = Cause::kSignaled;
  result.termination.signal = WTERMSIG(wait_status);
}

void ConcludeAtLimit(const backends::LimitHit& hit, const backends::ExecEnd& end,
                     ExecResult& result) {
  result.status = Status::kFailed;
  result.exit_code = -1;
  result.termination = {.cause = hit.cause, .limit = hit.limit, .observed = hit.observed};
  AddOwnEnd(end, result.termination);
}

}  // namespace

void AddOwnEnd(const backends::ExecEnd& end, Termination& termination) {
  if (end.kind != backends::ExecEnd::Kind::kExited) return;
  if (WIFEXITED(end.wait_status)) {
    termination.evidence.emplace_back("exit_code", WEXITSTATUS(end.wait_status));
  } else {
    termination.evidence.emplace_back("signal", WTERMSIG(end.wait_status));
  }
}

void ConcludeByItself(const backends::ExecEnd& end, ExecResult& result) {
  if (end.hit) return ConcludeAtLimit(*end.hit, end, result);
  switch (end.kind) {
    case backends::ExecEnd::Kind::kExited:
      return ConcludeExited(end.wait_status, result);
    case backends::ExecEnd::Kind::kStartupFailed:
      result.status = Status::kFailed;
      result.termination.cause = Cause::kStartupFailed;
      result.termination.stage = end.stage;
      result.termination.sys_errno = end.sys_errno;
      if (end.file_exists) result.termination.evidence.emplace_back("file_exists", 1);
      return;
    case backends::ExecEnd::Kind::kLost:
      result.status = Status::kFailed;
      result.termination.cause = Cause::kBackendLost;
      return;
  }
}

}  // namespace palmshed::run
