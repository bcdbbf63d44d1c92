// Sockets of every family and kind. Who connects where is in sockets_connect.c and, by other ways
// than the ordinary system calls, in sockets_ways.c; what a sandbox has of its own in
// sockets_own.c.
#include "sockets.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe.h"

struct kind {
  const char* name;
  int family, type, protocol;
};
// By number where the C library's headers do not know the family yet.
static const struct kind kKinds[] = {
    {"tcp", AF_INET, SOCK_STREAM, 0},
    {"udp", AF_INET, SOCK_DGRAM, 0},
    {"tcp6", AF_INET6, SOCK_STREAM, 0},
    {"udp6", AF_INET6, SOCK_DGRAM, 0},
    {"unix", AF_UNIX, SOCK_STREAM, 0},
    {"unix-dgram", AF_UNIX, SOCK_DGRAM, 0},
    {"unix-seqpacket", AF_UNIX, SOCK_SEQPACKET, 0},
    {"raw", AF_INET, SOCK_RAW, IPPROTO_RAW},
    {"raw-icmp", AF_INET, SOCK_RAW, IPPROTO_ICMP},
    {"raw6", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6},
    {"ping", AF_INET, SOCK_DGRAM, IPPROTO_ICMP},
    {"ping6", AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6},
    {"packet", AF_PACKET, SOCK_RAW, 0},
    {"packet-dgram", AF_PACKET, SOCK_DGRAM, 0},
    {"vsock", 40, SOCK_STREAM, 0},
    {"vsock-dgram", 40, SOCK_DGRAM, 0},
    {"alg", 38, SOCK_SEQPACKET, 0},
    {"bluetooth", 31, SOCK_RAW, 1},
    {"can", 29, SOCK_RAW, 1},
    {"tipc", 30, SOCK_STREAM, 0},
    {"rds", 21, SOCK_SEQPACKET, 0},
    {"kcm", 41, SOCK_DGRAM, 0},
    {"xdp", 44, SOCK_RAW, 0},
    {"smc", 43, SOCK_STREAM, 0},
    {"qipcrtr", 42, SOCK_DGRAM, 0},
    {"nfc", 39, SOCK_SEQPACKET, 0},
    {"ib", 27, SOCK_RAW, 0},
    {"mpls", 28, SOCK_RAW, 0},
    {"ax25", 3, SOCK_DGRAM, 0},
    {"x25", 9, SOCK_SEQPACKET, 0},
    {"netrom", 6, SOCK_SEQPACKET, 0},
    {"rose", 11, SOCK_SEQPACKET, 0},
    {"appletalk", 5, SOCK_DGRAM, 0},
    {"ipx", 4, SOCK_DGRAM, 0},
    {"key", 15, SOCK_RAW, 2},
    {"llc", 26, SOCK_STREAM, 0},
    {"phonet", 35, SOCK_DGRAM, 0},
    {"ieee802154", 36, SOCK_DGRAM, 0},
    {"caif", 37, SOCK_SEQPACKET, 0},
    {"mctp", 45, SOCK_DGRAM, 0},
    {"rxrpc", 33, SOCK_DGRAM, 2},
    {"atmpvc", 8, SOCK_DGRAM, 0},
    {"atmsvc", 20, SOCK_DGRAM, 0},
    {"isdn", 34, SOCK_RAW, 0},
    {"iucv", 32, SOCK_STREAM, 0},
    {"sctp", AF_INET, SOCK_STREAM, 132},
    {"mptcp", AF_INET, SOCK_STREAM, 262},
    {"udplite", AF_INET, SOCK_DGRAM, 136},
    {"dccp", AF_INET, 6, 33},
    {"netlink-route", 16, SOCK_RAW, 0},
    {"netlink-usersock", 16, SOCK_RAW, 2},
    {"netlink-sock-diag", 16, SOCK_RAW, 4},
    {"netlink-nflog", 16, SOCK_RAW, 5},
    {"netlink-xfrm", 16, SOCK_RAW, 6},
    {"netlink-selinux", 16, SOCK_RAW, 7},
    {"netlink-iscsi", 16, SOCK_RAW, 8},
    {"netlink-audit", 16, SOCK_RAW, 9},
    {"netlink-fib-lookup", 16, SOCK_RAW, 10},
    {"netlink-connector", 16, SOCK_RAW, 11},
    {"netlink-netfilter", 16, SOCK_RAW, 12},
    {"netlink-uevent", 16, SOCK_RAW, 15},
    {"netlink-generic", 16, SOCK_RAW, 16},
    {"netlink-scsitransport", 16, SOCK_RAW, 18},
    {"netlink-ecryptfs", 16, SOCK_RAW, 19},
    {"netlink-rdma", 16, SOCK_RAW, 20},
    {"netlink-crypto", 16, SOCK_RAW, 21},
    {"netlink-smc", 16, SOCK_RAW, 22},
};
enum { kKindCount = sizeof kKinds / sizeof *kKinds };

static int make_socket(const struct kind* kind) {
  detail_text("kind", kind->name);
  return socket(kind->family, kind->type | SOCK_CLOEXEC, kind->protocol);
}

static void one_socket(char** name) {
  for (size_t i = 0; i < kKindCount; ++i) {
    if (strcmp(kKinds[i].name, name[0]) != 0) continue;
    const int fd = make_socket(&kKinds[i]);
    report(fd);
    if (fd >= 0) close(fd);
    return;
  }
  dprintf(2, "%s: no such kind of socket\n", name[0]);
  exit(2);
}

static void every_socket(char** unused) {
  (void)unused;
  for (size_t i = 0; i < kKindCount; ++i) {
    const int fd = make_socket(&kKinds[i]);
    report_as(fd, "socket-%s", kKinds[i].name);
    if (fd >= 0) close(fd);
  }
}

// number and other: type and protocol, or type and whether the name is abstract.
struct attempt attempts[] = {
    {"socket", 1, one_socket},
    {"every-socket", 0, every_socket},
    {"tcp", 2, tcp, .number = SOCK_STREAM},
    {"tcp-orphan", 2, tcp_orphan},
    {"tcp-thread", 2, tcp_thread},
    {"tcp-fastopen", 2, tcp_fastopen},
    {"tcp-mapped", 2, tcp_mapped},
    {"tcp-mptcp", 2, tcp, .number = SOCK_STREAM, .other = 262},
    {"sctp", 2, tcp, .number = SOCK_STREAM, .other = 132},
    {"tcp-io-uring", 2, tcp_io_uring},
    {"tcp-int80", 2, tcp_int80},
    {"udp", 2, udp},
    {"udp-unconnected", 2, udp_unconnected},
    {"dns", 2, dns},
    {"ping", 1, ping},
    {"unix", 1, unix_connect, .number = SOCK_STREAM},
    {"unix-dgram", 1, unix_connect, .number = SOCK_DGRAM},
    {"unix-seqpacket", 1, unix_connect, .number = SOCK_SEQPACKET},
    {"abstract", 1, unix_connect, .number = SOCK_STREAM, .other = 1},
    {"abstract-dgram", 1, unix_connect, .number = SOCK_DGRAM, .other = 1},
    {"abstract-seqpacket", 1, unix_connect, .number = SOCK_SEQPACKET, .other = 1},
    {"vsock", 2, vsock},
    {"listen", 2, listen_tcp},
    {"listen-unix", 2, listen_unix, .other = 0},
    {"listen-abstract", 2, listen_unix, .other = 1},
    {"own-tcp", 0, own_internet, .number = SOCK_STREAM, .other = 4},
    {"own-tcp6", 0, own_internet, .number = SOCK_STREAM, .other = 6},
    {"own-udp", 0, own_internet, .number = SOCK_DGRAM, .other = 4},
    {"own-unix", 0, own_unix, .other = 0},
    {"own-abstract", 0, own_unix, .other = 1},
    {"own-socketpair", 0, own_socketpair},
    {"pass-descriptor", 0, pass_descriptor},
    {"interfaces", 0, interfaces},
    {"addresses", 0, addresses},
    {"add-address", 0, add_address},
    {"raise-interface", 0, raise_interface},
    {0}};
