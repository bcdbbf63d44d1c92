// A lock for raw threads.
#pragma once

#include "child/raw.h"

namespace palmshed::child {

/// Held for a few instructions or one short system call, never across one that can block.
class Mutex {
 public:
  void Lock() {
    if (word_.CompareExchange(kFree, kTaken)) return;
    while (word_.Exchange(kContended) != kFree) FutexWait(word_, kContended);
  }
  void Unlock() {
    if (word_.Exchange(kFree) == kContended) FutexWake(word_, 1);
  }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kTaken = 1;
  static constexpr std::uint32_t kContended = 2;
  FutexWord word_;
};

class MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) : mutex_(mutex) { mutex_.Lock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  ~MutexLock() { mutex_.Unlock(); }

 private:
  Mutex& mutex_;
};

}  // namespace palmshed::child
