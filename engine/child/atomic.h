// Atomic words. The standard library's <atomic> cannot be had here: in C++23 it drags in threads
// and locales of another libc than the one the helper is built with.
#pragma once

#include <cstdint>

namespace palmshed::child {

/// Sequentially consistent throughout: none of these is on a path where a weaker order would show.
template <typename T>
class Atomic {
 public:
  static_assert(__atomic_always_lock_free(sizeof(T), nullptr));

  constexpr Atomic() = default;
  explicit constexpr Atomic(T value) : value_(value) {}
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T Load() const { return __atomic_load_n(&value_, __ATOMIC_SEQ_CST); }
  void Store(T value) { __atomic_store_n(&value_, value, __ATOMIC_SEQ_CST); }
  T Exchange(T value) { return __atomic_exchange_n(&value_, value, __ATOMIC_SEQ_CST); }
  T FetchAdd(T value) { return __atomic_fetch_add(&value_, value, __ATOMIC_SEQ_CST); }
  T FetchOr(T value) { return __atomic_fetch_or(&value_, value, __ATOMIC_SEQ_CST); }
  /// True when it held `expected` and now holds `desired`.
  bool CompareExchange(T expected, T desired) {
    return __atomic_compare_exchange_n(&value_, &expected, desired, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
  }
  const T* address() const { return &value_; }
  T* address() { return &value_; }

 private:
  T value_{};
};

using FutexWord = Atomic<std::uint32_t>;

}  // namespace palmshed::child
