// For tests of seccomp programs: runs one in software, and runs code in a process of its own.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace palmshed::kernel {

/// The value that `program` returns for `call`, as the kernel would run it; nullopt for an
/// instruction that the kernel would refuse or a jump out of the program.
inline std::optional<std::uint32_t> RunFilter(std::span<const sock_filter> program,
                                              const seccomp_data& call) {
  std::uint32_t accumulator = 0;
  for (std::size_t at = 0; at < program.size(); ++at) {
    const sock_filter& one = program[at];
    switch (one.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        if (one.k % 4 != 0 || one.k + 4 > sizeof call) return std::nullopt;
        std::memcpy(&accumulator, reinterpret_cast<const char*>(&call) + one.k, 4);
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        accumulator &= one.k;
        break;
      case BPF_JMP | BPF_JA:
        at += one.k;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        at += accumulator == one.k ? one.jt : one.jf;
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
        at += accumulator >= one.k ? one.jt : one.jf;
        break;
      case BPF_JMP | BPF_JGT | BPF_K:
        at += accumulator > one.k ? one.jt : one.jf;
        break;
      case BPF_RET | BPF_K:
        return one.k;
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

/// Loads `program` into the calling process; false with errno.
inline bool LoadFilter(std::vector<sock_filter> program) {
  const sock_fprog whole{.len = static_cast<unsigned short>(program.size()),
                         .filter = program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &whole) == 0;
}

/// The exit code of a forked process that runs `body`; -1 when it did not exit by itself.
inline int InForkedProcess(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) _exit(body());
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace palmshed::kernel
