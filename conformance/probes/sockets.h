// What the sources of the probe `sockets` share.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

struct address {
  union {
    struct sockaddr any;
    struct sockaddr_storage storage;
    struct sockaddr_un unix_path;
  } to;
  socklen_t size;
};

// IPv4 or IPv6 address and port as text; ends the program when it is neither.
struct address internet(const char* text, const char* port);
struct address unix_address(const char* name, int abstract);
// A connected socket within a second, or -1.
int connected(int family, int type, int protocol, const struct address* address);
// Adds "answer", what comes within 0.3 s; -1 when the socket has an error by then.
int hear(int fd);

void dns(char** arguments);
void ping(char** arguments);
void tcp(char** arguments);
void tcp_fastopen(char** arguments);
void tcp_mapped(char** arguments);
void tcp_orphan(char** arguments);
void tcp_thread(char** arguments);
void udp(char** arguments);
void udp_unconnected(char** arguments);
void unix_connect(char** arguments);
void vsock(char** arguments);

void tcp_int80(char** arguments);
void tcp_io_uring(char** arguments);

void add_address(char** arguments);
void addresses(char** arguments);
void interfaces(char** arguments);
void listen_tcp(char** arguments);
void listen_unix(char** arguments);
void own_internet(char** arguments);
void own_socketpair(char** arguments);
void own_unix(char** arguments);
void pass_descriptor(char** arguments);
void raise_interface(char** arguments);
