// System calls by an ABI that is not the program's own: numbers mean other calls there, so that a
// filter which knows one ABI alone lets them by. On other architectures there is nothing to try.
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "calls.h"

#ifdef __x86_64__

static long call_32(long number, long first, long second, long third) {
  int result;
  __asm__ volatile("int $0x80"
                   : "=a"(result)
                   : "a"(number), "b"(first), "c"(second), "d"(third), "S"(0L)
                   : "memory", "r8", "r9", "r10", "r11");
  if (result >= 0) return result;
  errno = -result;
  return -1;
}
static long call_x32(long number, long first, long second, long third) {
  return syscall(0x40000000L | number, first, second, third);
}

// Below 4 GiB, where a 32-bit pointer reaches.
static char path[] = "/";
static long pointer(void) { return (long)(uintptr_t)path; }

static long x32_getpid(void) { return call_x32(39, 0, 0, 0); }
static long x32_socket(void) { return call_x32(41, AF_INET, SOCK_STREAM, 0); }
static long x32_open(void) { return call_x32(2, pointer(), O_RDONLY, 0); }
static long x32_unshare(void) { return call_x32(272, 0x10000000, 0, 0); }
static long int80_getpid(void) { return call_32(20, 0, 0, 0); }
static long int80_socket(void) { return call_32(359, AF_INET, SOCK_STREAM, 0); }
static long int80_open(void) { return call_32(5, pointer(), O_RDONLY, 0); }
static long int80_unshare(void) { return call_32(310, 0x10000000, 0, 0); }
static long int80_keyctl(void) { return call_32(288, 0, -4, 0); }
static long int80_ptrace(void) { return call_32(26, 0x4206, 1, 0); }

#else

static long absent(void) {
  errno = ENOSYS;
  return -1;
}
#define x32_getpid absent
#define x32_socket absent
#define x32_open absent
#define x32_unshare absent
#define int80_getpid absent
#define int80_socket absent
#define int80_open absent
#define int80_unshare absent
#define int80_keyctl absent
#define int80_ptrace absent

#endif

const struct call foreign_calls[] = {{"x32-getpid", x32_getpid, kPlain},
                                     {"x32-socket", x32_socket, kPlain},
                                     {"x32-open", x32_open, kPlain},
                                     {"x32-unshare", x32_unshare, kPlain},
                                     {"int80-getpid", int80_getpid, kPlain},
                                     {"int80-socket", int80_socket, kPlain},
                                     {"int80-open", int80_open, kPlain},
                                     {"int80-unshare", int80_unshare, kPlain},
                                     {"int80-keyctl", int80_keyctl, kWrong},
                                     {"int80-ptrace", int80_ptrace, kWrong},
                                     {0}};
