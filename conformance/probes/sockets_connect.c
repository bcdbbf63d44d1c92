// Connecting to somebody: the host's listeners, other sandboxes, other machines' addresses.
#include <arpa/inet.h>
#include <errno.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"
#include "sockets.h"

enum { kConnectMs = 1000, kAnswerMs = 300 };

struct address internet(const char* text, const char* port) {
  struct address address = {0};
  struct sockaddr_in four = {.sin_family = AF_INET};
  struct sockaddr_in6 six = {.sin6_family = AF_INET6};
  four.sin_port = six.sin6_port = htons((uint16_t)number(port));
  if (inet_pton(AF_INET, text, &four.sin_addr) == 1) {
    memcpy(&address.to, &four, address.size = sizeof four);
  } else if (inet_pton(AF_INET6, text, &six.sin6_addr) == 1) {
    memcpy(&address.to, &six, address.size = sizeof six);
  } else {
    dprintf(2, "%s: not an address\n", text);
    exit(2);
  }
  return address;
}

struct address unix_address(const char* name, int abstract) {
  struct address address = {.to.unix_path.sun_family = AF_UNIX};
  const size_t offset = offsetof(struct sockaddr_un, sun_path) + (abstract ? 1 : 0);
  const size_t length = strnlen(name, sizeof address.to.unix_path.sun_path - 2);
  memcpy((char*)&address.to + offset, name, length);
  address.size = (socklen_t)(offset + length + (abstract ? 0 : 1));
  return address;
}

int connected(int family, int type, int protocol, const struct address* address) {
  const int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
  if (fd < 0) return -1;
  int failure = connect(fd, &address->to.any, address->size) == 0 ? 0 : errno;
  if (failure == EINPROGRESS) {
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    socklen_t size = sizeof failure;
    failure = ETIMEDOUT;
    if (poll(&wait, 1, kConnectMs) == 1) getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size);
  }
  if (failure == 0) return fd;
  close(fd);
  errno = failure;
  return -1;
}

int hear(int fd) {
  struct pollfd wait = {.fd = fd, .events = POLLIN};
  char answer[200];
  ssize_t size = -1;
  errno = EAGAIN;
  if (poll(&wait, 1, kAnswerMs) == 1) size = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
  if (size > 0) {
    detail_bytes("answer", answer, (size_t)size);
  } else {
    detail_text("answer", NULL);
  }
  return size >= 0 || errno == EAGAIN ? 0 : -1;
}

// Somebody who accepts has been reached, whatever they answer.
static void report_connected(int fd) {
  const int failure = errno;
  if (fd < 0) {
    detail_text("answer", NULL);
  } else {
    (void)hear(fd);
  }
  errno = failure;
  report(fd);
  if (fd >= 0) close(fd);
}

void tcp(char** to) {
  const struct address address = internet(to[0], to[1]);
  report_connected(connected(address.to.any.sa_family, SOCK_STREAM, (int)current->other, &address));
}

void tcp_mapped(char** to) {
  char mapped[64];
  snprintf(mapped, sizeof mapped, "::ffff:%s", to[0]);
  const struct address address = internet(mapped, to[1]);
  report_connected(connected(AF_INET6, SOCK_STREAM, 0, &address));
}

void tcp_fastopen(char** to) {
  const struct address address = internet(to[0], to[1]);
  const int fd = socket(address.to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const struct timeval patience = {.tv_sec = kConnectMs / 1000};
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  ssize_t sent =
      fd < 0 ? -1 : sendto(fd, "?", 1, MSG_FASTOPEN | MSG_NOSIGNAL, &address.to.any, address.size);
  if (sent < 0 && errno == EINPROGRESS) errno = ETIMEDOUT;
  report(sent);
  if (fd >= 0) close(fd);
}

void tcp_orphan(char** to) {
  int done[2];
  if (pipe(done) != 0) {
    report_error("no pipe");
    return;
  }
  if (fork() == 0) {
    (void)setsid();
    if (fork() != 0) _exit(0);
    tcp(to);
    _exit(0);
  }
  (void)wait(NULL);
  close(done[1]);
  char nothing;
  (void)!read(done[0], &nothing, 1);  // Ends when the orphan has.
  close(done[0]);
}

static void* tcp_in_thread(void* to) {
  tcp(to);
  return NULL;
}

void tcp_thread(char** to) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, tcp_in_thread, to) != 0) {
    report_error("no thread");
    return;
  }
  pthread_join(thread, NULL);
}

static void ask(char** to, const void* question, size_t size) {
  const struct address address = internet(to[0], to[1]);
  const int fd = connected(address.to.any.sa_family, SOCK_DGRAM, 0, &address);
  if (fd < 0) {
    report_connected(fd);
    return;
  }
  const ssize_t sent = send(fd, question, size, MSG_NOSIGNAL);
  report(sent < 0 ? -1 : hear(fd));
  close(fd);
}

void udp(char** to) { ask(to, "?", 1); }

void dns(char** to) {
  static const char kQuestion[] =
      "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x09localhost\x07invalid\x00\x00\x01\x00"
      "\x01";
  ask(to, kQuestion, sizeof kQuestion - 1);
}

void udp_unconnected(char** to) {
  const struct address address = internet(to[0], to[1]);
  const int fd = socket(address.to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    report(-1);
    return;
  }
  const int on = 1;
  const int six = address.to.any.sa_family == AF_INET6;
  setsockopt(fd, six ? IPPROTO_IPV6 : IPPROTO_IP, six ? IPV6_RECVERR : IP_RECVERR, &on, sizeof on);
  const ssize_t sent = sendto(fd, "?", 1, MSG_NOSIGNAL, &address.to.any, address.size);
  report(sent < 0 ? -1 : hear(fd));
  close(fd);
}

void ping(char** to) {
  char no_port[] = "0";
  const struct address address = internet(to[0], no_port);
  static const char kEcho[] = "\x08\x00\xf7\xff\x00\x00\x00\x00";  // Its checksum included.
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_ICMP);
  if (fd < 0) fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
  if (fd < 0 || sendto(fd, kEcho, 8, MSG_NOSIGNAL, &address.to.any, address.size) < 0) {
    detail_text("answer", NULL);
    report(-1);
  } else {
    report(hear(fd));
  }
  if (fd >= 0) close(fd);
}

void unix_connect(char** name) {
  const struct address address = unix_address(name[0], (int)current->other);
  const int fd = connected(AF_UNIX, (int)current->number, 0, &address);
  if (fd >= 0) (void)send(fd, "?", 1, MSG_NOSIGNAL);
  report_connected(fd);
}

void vsock(char** to) {
  struct address address = {0};
  const struct sockaddr_vm vm = {.svm_family = AF_VSOCK,
                                 .svm_cid = (unsigned)number(to[0]),
                                 .svm_port = (unsigned)number(to[1])};
  memcpy(&address.to, &vm, address.size = sizeof vm);
  report_connected(connected(AF_VSOCK, SOCK_STREAM, 0, &address));
}
