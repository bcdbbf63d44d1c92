// Connecting by ways that a filter of system calls may overlook: io_uring and the 32-bit entry.
#include <errno.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"
#include "sockets.h"

struct ring {
  int fd;
  struct io_uring_params parameters;
  char *submission, *completion;
  struct io_uring_sqe* entries;
};

static void* map_ring(int fd, size_t size, off_t what) {
  void* at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, what);
  return at == MAP_FAILED ? NULL : at;
}

static int open_ring(struct ring* ring) {
  memset(ring, 0, sizeof *ring);
  ring->fd = (int)syscall(SYS_io_uring_setup, 4, &ring->parameters);
  if (ring->fd < 0) return -1;
  const struct io_uring_params* facts = &ring->parameters;
  ring->submission = map_ring(ring->fd, facts->sq_off.array + 4 * facts->sq_entries, 0);
  ring->completion = map_ring(
      ring->fd, facts->cq_off.cqes + facts->cq_entries * sizeof(struct io_uring_cqe), 0x8000000);
  ring->entries = map_ring(ring->fd, facts->sq_entries * sizeof *ring->entries, 0x10000000);
  return ring->submission != NULL && ring->completion != NULL && ring->entries != NULL ? 0 : -1;
}

// One operation, waited for; its result, negative for an errno.
static int perform(struct ring* ring, const struct io_uring_sqe* operation) {
  const struct io_uring_params* facts = &ring->parameters;
  unsigned* tail = (unsigned*)(void*)(ring->submission + facts->sq_off.tail);
  unsigned* array = (unsigned*)(void*)(ring->submission + facts->sq_off.array);
  ring->entries[0] = *operation;
  array[*tail % facts->sq_entries] = 0;
  __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
  if (syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
    return -errno;
  unsigned* head = (unsigned*)(void*)(ring->completion + facts->cq_off.head);
  const struct io_uring_cqe* cqe =
      (const struct io_uring_cqe*)(void*)(ring->completion + facts->cq_off.cqes) +
      *head % facts->cq_entries;
  const int result = cqe->res;
  __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
  return result;
}

void tcp_io_uring(char** to) {
  const struct address address = internet(to[0], to[1]);
  struct ring ring;
  if (open_ring(&ring) != 0) {
    report(-1);
    return;
  }
  const struct io_uring_sqe make = {
      .opcode = 45 /* IORING_OP_SOCKET */, .fd = address.to.any.sa_family, .off = SOCK_STREAM};
  int result = perform(&ring, &make);
  if (result >= 0) {
    const struct io_uring_sqe connect_it = {.opcode = IORING_OP_CONNECT,
                                            .fd = result,
                                            .addr = (uint64_t)(uintptr_t)&address.to,
                                            .off = address.size};
    result = perform(&ring, &connect_it);
  }
  errno = result < 0 ? -result : 0;
  report(result < 0 ? -1 : 0);
  close(ring.fd);
}

#ifdef __x86_64__

static long call_32(long call, long first, long second, long third) {
  long result;
  __asm__ volatile("int $0x80"
                   : "=a"(result)
                   : "a"(call), "b"(first), "c"(second), "d"(third)
                   : "memory", "r8", "r9", "r10", "r11");
  return (int)result;
}

static long connect_32(char** to) {
  static struct address address;  // Below 4 GiB, where a 32-bit pointer reaches.
  address = internet(to[0], to[1]);
  const long fd = call_32(359, AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return fd;
  const long result = call_32(362, fd, (long)(uintptr_t)&address.to, address.size);
  close((int)fd);
  return result;
}

#else

static long connect_32(char** to) {
  (void)to;
  return -ENOSYS;
}

#endif

void tcp_int80(char** to) {
  const long result = connect_32(to);
  errno = result < 0 ? (int)-result : 0;
  report(result < 0 ? -1 : 0);
}
