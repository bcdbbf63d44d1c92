// Turns a table of decisions about system calls into a classic BPF program for seccomp(2). Knows
// nothing about which calls are dangerous; that table is the caller's.
//
// Shape of a program: check of the architecture, binary search over ranges of call numbers, the
// argument tests that some calls need, and one return per distinct verdict. Ranges keep it short
// (loading costs time per instruction, once per sandbox); a call that is allowed whatever its
// arguments costs nothing later, because the kernel caches that answer per number (Linux 5.11).
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <vector>

namespace palmshed::kernel {

/// The instruction set that a program is made for, as the kernel names it to filters.
enum class FilterArch : std::uint32_t {
  kX86_64 = AUDIT_ARCH_X86_64,
  kAArch64 = AUDIT_ARCH_AARCH64,
};

#if defined(__x86_64__)
inline constexpr FilterArch kHostArch = FilterArch::kX86_64;
#elif defined(__aarch64__)
inline constexpr FilterArch kHostArch = FilterArch::kAArch64;
#else
#error "no system call table for this architecture"
#endif

/// What the kernel does with a call: one of the SECCOMP_RET_ values.
struct Verdict {
  std::uint32_t value = SECCOMP_RET_ALLOW;
  static constexpr Verdict Allow() { return {SECCOMP_RET_ALLOW}; }
  /// The call fails with this errno and nothing else happens.
  static constexpr Verdict Errno(int number) {
    return {SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(number) & SECCOMP_RET_DATA)};
  }
  bool operator==(const Verdict&) const = default;
};

/// A 32-bit half of an argument. The kernel reads an int argument from the low half alone, so a
/// test of such an argument must ignore the high half, which the caller fills as it likes.
struct ArgWord {
  std::uint32_t index = 0;  ///< 0 to 5.
  bool high = false;
  std::uint32_t mask = 0xffffffff;  ///< Bits that are looked at.
  bool operator==(const ArgWord&) const = default;
};

/// What is decided about a call: `then[i]` where the argument equals `values[i]`, else the verdict.
struct Decision {
  Verdict otherwise{};
  ArgWord argument{};
  std::vector<std::uint32_t> values{};  ///< Empty: the verdict stands whatever the arguments.
  std::vector<Decision> then{};
  bool operator==(const Decision&) const = default;

  static Decision Always(Verdict verdict) { return {.otherwise = verdict}; }
  /// Adds a case: where the argument equals one of `equals`, `decision` decides.
  Decision When(const std::vector<std::uint32_t>& equals, const Decision& decision) &&;
};

/// The decision about the numbers `first` to `last`, both included.
struct NumberRange {
  std::uint32_t first;
  std::uint32_t last;
  Decision decision;
};

/// A filter before it is a program.
struct FilterSpec {
  FilterArch arch = kHostArch;
  Verdict foreign{};                  ///< Calls made through another architecture's entry.
  Decision fallback{};                ///< Numbers in no range.
  std::vector<NumberRange> ranges{};  ///< In any order; they must not overlap.
};

/// The program. Preconditions: ranges do not overlap and the result fits 255 instructions.
std::vector<sock_filter> CompileFilter(const FilterSpec& spec);

}  // namespace palmshed::kernel
