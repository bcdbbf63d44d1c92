// System calls without libc: no errno, no thread-local state, no cancellation points, so that they
// may be used by raw threads and between vfork and exec. A failure is the negative errno.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "child/atomic.h"
#include "child/kernel_abi.h"

namespace palmshed::child {

inline long InvokeKernel(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc #0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory", "cc");
  return x0;
#else
#error "no system call sequence for this architecture"
#endif
}

template <typename T>
long KernelWord(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<long>(value);
  } else if constexpr (std::is_null_pointer_v<T>) {
    return 0;
  } else {
    return static_cast<long>(value);
  }
}

/// System call `number` with up to six arguments.
template <typename... Arguments>
long Call(long number, Arguments... arguments) {
  static_assert(sizeof...(Arguments) <= 6);
  const long words[7] = {KernelWord(arguments)...};
  return InvokeKernel(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

/// The address that a call has answered, such as mmap(2).
inline void* AddressIn(long result) {
  return reinterpret_cast<void*>(result);  // NOLINT(performance-no-int-to-ptr): from the kernel
}

// clone(2) onto a stack of its own: the child runs `entry(argument)` there and, should that return,
// ends its thread. `stack_top` is the first address above the stack. Returns in the parent only.
extern "C" long PalmshedCloneOnStack(unsigned long flags, void* stack_top, int* parent_word,
                                     void* child_word, void (*entry)(void*), void* argument);

inline void Close(int fd) { (void)Call(SYS_close, fd); }

/// A copy, at the first free number from `lowest` on. Of a number beyond RLIMIT_NOFILE fcntl(2)
/// says EINVAL: that too is for want of descriptors.
inline long Duplicate(int fd, int lowest = 0) {
  const long copy = Call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, lowest);
  return copy == -EINVAL ? -EMFILE : copy;
}

/// Whatever a seccomp filter of the host's answers to exit_group(2).
[[noreturn]] inline void ExitGroup(int code) {
  Call(SYS_exit_group, code);
  __builtin_trap();
}

/// CLOCK_MONOTONIC in nanoseconds.
inline std::uint64_t NowNs() {
  timespec now{};
  (void)Call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

inline timespec TimespecOf(std::uint64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000U), static_cast<long>(ns % 1'000'000'000U)};
}

inline void SleepNs(std::uint64_t ns) {
  const timespec duration = TimespecOf(ns);
  (void)Call(SYS_nanosleep, &duration, nullptr);
}

/// Sleeps while `word` holds `expected`; may return early. `timeout_ns` 0: no timeout.
inline void FutexWait(const FutexWord& word, std::uint32_t expected, std::uint64_t timeout_ns = 0) {
  const timespec timeout = TimespecOf(timeout_ns);
  (void)Call(SYS_futex, word.address(), kFutexWait, expected, timeout_ns == 0 ? nullptr : &timeout);
}

inline void FutexWake(const FutexWord& word, int waiters) {
  (void)Call(SYS_futex, word.address(), kFutexWake, waiters);
}

/// ppoll(2) without a signal mask; `timeout_ns` 0: returns at once, kNoTimeout: waits for ever.
/// Ends the process where it may not wait for so many (EINVAL): a workload has its init's uid and
/// can take its descriptors away by prlimit(2). Waiting again would take a processor, outside of
/// every limit, and see no end.
inline constexpr std::uint64_t kNoTimeout = ~std::uint64_t{0};
inline long Poll(pollfd* fds, unsigned count, std::uint64_t timeout_ns) {
  timespec timeout = TimespecOf(timeout_ns);
  const timespec* const limit = timeout_ns == kNoTimeout ? nullptr : &timeout;
  const long ready = Call(SYS_ppoll, fds, count, limit, nullptr, 0);
  if (ready == -EINVAL) ExitGroup(1);
  return ready;
}

/// Until something can be read from `fd`, or its end has come. A wait that fails is neither.
inline void AwaitReadable(int fd) {
  pollfd watched{fd, POLLIN, 0};
  while (Poll(&watched, 1, kNoTimeout) < 0) {
  }
}

inline long OpenAt(int directory, const char* path, int flags, unsigned mode = 0) {
  return Call(SYS_openat, directory, path, flags | O_CLOEXEC, mode);
}

inline long Prctl(int option, unsigned long a = 0, unsigned long b = 0) {
  return Call(SYS_prctl, option, a, b, 0, 0);
}

inline long Mount(const char* source, const char* target, const char* type, unsigned long flags,
                  const char* options) {
  return Call(SYS_mount, source, target, type, flags, options);
}

}  // namespace palmshed::child
