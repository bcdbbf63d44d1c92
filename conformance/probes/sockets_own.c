// What a sandbox has of the network for itself.
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "probe.h"
#include "sockets.h"

enum { kMostNames = 64 };

static void serve(int fd, long long milliseconds) {
  const long long end = now_ms(CLOCK_MONOTONIC) + milliseconds;
  for (long long left = milliseconds; left > 0; left = end - now_ms(CLOCK_MONOTONIC)) {
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    if (poll(&wait, 1, (int)left) != 1) continue;
    const int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    if (peer < 0) return;
    (void)send(peer, "hello\n", 6, MSG_NOSIGNAL);
    close(peer);
  }
}

static void listen_and_serve(const struct address* address, const char* milliseconds) {
  const int fd = socket(address->to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const int result =
      fd >= 0 && bind(fd, &address->to.any, address->size) == 0 ? listen(fd, 16) : -1;
  report(result);
  if (result == 0) serve(fd, number(milliseconds));
  if (fd >= 0) close(fd);
}

void listen_tcp(char** arguments) {
  const struct address address = internet("0.0.0.0", arguments[0]);
  listen_and_serve(&address, arguments[1]);
}

void listen_unix(char** arguments) {
  const struct address address = unix_address(arguments[0], (int)current->other);
  listen_and_serve(&address, arguments[1]);
  if (current->other == 0) unlink(arguments[0]);
}

// A byte from one socket to the other.
static long cross(int from, int to) {
  char byte = 0;
  if (send(from, "x", 1, MSG_NOSIGNAL) != 1) return -1;
  struct pollfd wait = {.fd = to, .events = POLLIN};
  if (poll(&wait, 1, 1000) != 1) {
    errno = ETIMEDOUT;
    return -1;
  }
  return recv(to, &byte, 1, 0) == 1 && byte == 'x' ? 0 : -1;
}

static long stream_to_itself(struct address* address) {
  const int family = address->to.any.sa_family;
  const int listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, &address->to.any, address->size) != 0) return -1;
  if (listen(listener, 1) != 0) return -1;
  if (family != AF_UNIX) getsockname(listener, &address->to.any, &address->size);
  const int client = connected(family, SOCK_STREAM, 0, address);
  const int peer = client < 0 ? -1 : accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  const long result = peer < 0 ? -1 : cross(client, peer);
  const int failure = errno;
  close(listener);
  if (client >= 0) close(client);
  if (peer >= 0) close(peer);
  errno = failure;
  return result;
}

void own_internet(char** unused) {
  (void)unused;
  struct address address = internet(current->other == 6 ? "::1" : "127.0.0.1", "0");
  if (current->number == SOCK_STREAM) {
    report(stream_to_itself(&address));
    return;
  }
  const int receiver = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (receiver < 0 || bind(receiver, &address.to.any, address.size) != 0) {
    report(-1);
    return;
  }
  getsockname(receiver, &address.to.any, &address.size);
  const int sender = connected(AF_INET, SOCK_DGRAM, 0, &address);
  report(sender < 0 ? -1 : cross(sender, receiver));
  close(receiver);
  if (sender >= 0) close(sender);
}

void own_unix(char** unused) {
  (void)unused;
  char name[64];
  snprintf(name, sizeof name, "palmshed-probe-%d", getpid());
  struct address address = unix_address(name, (int)current->other);
  report(stream_to_itself(&address));
  if (current->other == 0) unlink(name);
}

void own_socketpair(char** unused) {
  (void)unused;
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    report(-1);
    return;
  }
  report(cross(pair[0], pair[1]));
  close(pair[0]);
  close(pair[1]);
}

void pass_descriptor(char** unused) {
  (void)unused;
  int pair[2];
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
                          .cmsg_level = SOL_SOCKET,
                          .cmsg_type = SCM_RIGHTS}};
  char byte = 'x';
  struct iovec data = {&byte, 1};
  struct msghdr message = {.msg_iov = &data,
                           .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = sizeof control.bytes};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    report(-1);
    return;
  }
  memcpy(CMSG_DATA(&control.header), &pair[0], sizeof(int));
  int passed = -1;
  if (sendmsg(pair[0], &message, MSG_NOSIGNAL) == 1 &&
      recvmsg(pair[1], &message, MSG_CMSG_CLOEXEC) == 1 && message.msg_controllen > 0) {
    memcpy(&passed, CMSG_DATA(&control.header), sizeof passed);
  }
  report(passed < 0 ? -1 : 0);
  if (passed >= 0) close(passed);
  close(pair[0]);
  close(pair[1]);
}

// Lists texts sorted and once each.
static void list_sorted(const char* member, char (*texts)[64], int count) {
  char* sorted[kMostNames];
  for (int i = 0; i < count; ++i) sorted[i] = texts[i];
  qsort(sorted, (size_t)count, sizeof *sorted, compare_texts);
  list_begin(member);
  for (int i = 0; i < count; ++i) {
    if (i == 0 || strcmp(sorted[i], sorted[i - 1]) != 0) list_text(sorted[i]);
  }
  list_end();
}

// number of what was gathered; -1 when it cannot be known.
static int gather(char (*texts)[64], int only_up, int want_addresses) {
  struct ifaddrs* all = NULL;
  int count = 0;
  if (getifaddrs(&all) != 0) return -1;
  for (const struct ifaddrs* at = all; at != NULL && count < kMostNames; at = at->ifa_next) {
    if (only_up && (at->ifa_flags & IFF_UP) == 0) continue;
    if (!want_addresses) {
      snprintf(texts[count++], 64, "%s", at->ifa_name);
      continue;
    }
    const int family = at->ifa_addr == NULL ? 0 : at->ifa_addr->sa_family;
    const void* bytes = (const char*)at->ifa_addr + (family == AF_INET ? 4 : 8);
    if (family != AF_INET && family != AF_INET6) continue;
    if (inet_ntop(family, bytes, texts[count], 64) != NULL) ++count;
  }
  freeifaddrs(all);
  return count;
}

void interfaces(char** unused) {
  (void)unused;
  static char names[kMostNames][64];
  const int count = gather(names, 0, 0);
  if (count >= 0) list_sorted("names", names, count);
  const int up = count < 0 ? -1 : gather(names, 1, 0);
  if (up >= 0) list_sorted("up", names, up);
  report(up);
}

void addresses(char** unused) {
  (void)unused;
  static char texts[kMostNames][64];
  const int count = gather(texts, 0, 1);
  if (count >= 0) list_sorted("addresses", texts, count);
  report(count);
}

static long change_address(int fd, int kind, int flags) {
  struct {
    struct nlmsghdr header;
    struct ifaddrmsg body;
    struct rtattr attribute;
    unsigned char address[4];
  } request = {.header = {.nlmsg_len = sizeof request,
                          .nlmsg_type = (uint16_t)kind,
                          .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags)},
               .body = {.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = 1},
               .attribute = {.rta_len = sizeof request.attribute + 4, .rta_type = IFA_LOCAL},
               .address = {127, 0, 0, 2}};
  struct {
    struct nlmsghdr header;
    struct nlmsgerr body;
    char more[512];
  } answer = {0};
  if (send(fd, &request, sizeof request, 0) < 0) return -1;
  if (recv(fd, &answer, sizeof answer, 0) < 0) return -1;
  errno = -answer.body.error;
  return answer.body.error == 0 ? 0 : -1;
}

void add_address(char** unused) {
  (void)unused;
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  const long added = fd < 0 ? -1 : change_address(fd, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
  report(added);
  if (added == 0) (void)change_address(fd, RTM_DELADDR, 0);
  if (fd >= 0) close(fd);
}

void raise_interface(char** unused) {
  (void)unused;
  struct ifreq request = {.ifr_name = "lo"};
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  int result = fd < 0 ? -1 : ioctl(fd, SIOCGIFFLAGS, &request);
  request.ifr_flags = (short)(request.ifr_flags | IFF_UP);
  if (result == 0) result = ioctl(fd, SIOCSIFFLAGS, &request);
  report(result);
  if (fd >= 0) close(fd);
}
