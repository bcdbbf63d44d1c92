// Walking the processes of the sandbox's pid namespace.
#pragma once

#include "child/pool.h"

namespace palmshed::child {

/// Yields the number of every process but init. Reads /proc; where there is none, tries the numbers
/// one by one. Without a pid namespace the host's processes are among them.
class ProcessWalk {
 public:
  explicit ProcessWalk(Pool* pool);
  ProcessWalk(const ProcessWalk&) = delete;
  ProcessWalk& operator=(const ProcessWalk&) = delete;
  ~ProcessWalk();

  /// 0 at the end.
  int Next();

 private:
  int NextInProc();
  int NextNumber();

  Pool* const pool_;
  int directory_ = -1;
  long filled_ = 0;
  long at_ = 0;
  std::uint32_t number_ = 1;
  std::uint32_t last_ = 0;
  alignas(8) char entries_[4096];
};

}  // namespace palmshed::child
