#include "support/host_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "support/process.h"

namespace palmshed::tests {
namespace {

constexpr char kAnswer[] = {'H', 'O', 'S', 'T'};

int Bound(int family, int type, const void* address, socklen_t size) {
  const int fd = ::socket(family, type | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::bind(fd, static_cast<const sockaddr*>(address), size) != 0 ||
      (type == SOCK_STREAM && ::listen(fd, 64) != 0)) {
    throw std::system_error(errno, std::generic_category(), "a listener of the test");
  }
  return fd;
}

std::string PortOf(int fd) {
  sockaddr_in6 address{};  // The port is at the same place in both families.
  socklen_t size = sizeof address;
  (void)::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return std::to_string(ntohs(address.sin6_port));
}

int BoundTo127(int type) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return Bound(AF_INET, type, &address, sizeof address);
}

int BoundUnix(const std::string& name, bool abstract) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + (abstract ? 1 : 0), name.data(), name.size());
  const std::size_t size = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  return Bound(AF_UNIX, SOCK_STREAM, &address, static_cast<socklen_t>(size));
}

}  // namespace

std::unique_ptr<HostListener> HostListener::Tcp() {
  const int fd = BoundTo127(SOCK_STREAM);
  return std::unique_ptr<HostListener>(new HostListener(fd, PortOf(fd), false));
}

std::unique_ptr<HostListener> HostListener::Tcp6() {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const int fd = Bound(AF_INET6, SOCK_STREAM, &address, sizeof address);
  return std::unique_ptr<HostListener>(new HostListener(fd, PortOf(fd), false));
}

std::unique_ptr<HostListener> HostListener::Udp() {
  const int fd = BoundTo127(SOCK_DGRAM);
  return std::unique_ptr<HostListener>(new HostListener(fd, PortOf(fd), true));
}

std::unique_ptr<HostListener> HostListener::Abstract() {
  const std::string name = "palmshed-test-" + UniqueName();
  return std::unique_ptr<HostListener>(new HostListener(BoundUnix(name, true), name, false));
}

std::unique_ptr<HostListener> HostListener::Path(const std::string& path) {
  const int fd = BoundUnix(path, false);
  if (::chmod(path.c_str(), 0777) != 0) throw std::system_error(errno, std::generic_category());
  return std::unique_ptr<HostListener>(new HostListener(fd, path, false));
}

HostListener::HostListener(int socket, std::string where, bool datagrams)
    : socket_(socket),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      where_(std::move(where)),
      thread_([this, datagrams] { Serve(datagrams); }) {}

HostListener::~HostListener() {
  const std::uint64_t one = 1;
  (void)!::write(stop_, &one, sizeof one);
  thread_.join();
  ::close(socket_);
  ::close(stop_);
}

void HostListener::Serve(bool datagrams) {
  pollfd waiting[2] = {{.fd = socket_, .events = POLLIN, .revents = 0},
                       {.fd = stop_, .events = POLLIN, .revents = 0}};
  while (::poll(waiting, 2, -1) > 0 && waiting[1].revents == 0) {
    ++hits_;
    if (datagrams) {
      char buffer[512];
      sockaddr_storage from{};
      socklen_t size = sizeof from;
      (void)::recvfrom(socket_, buffer, sizeof buffer, 0, reinterpret_cast<sockaddr*>(&from),
                       &size);
      (void)::sendto(socket_, kAnswer, sizeof kAnswer, 0, reinterpret_cast<sockaddr*>(&from), size);
    } else {
      const int peer = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      (void)::send(peer, kAnswer, sizeof kAnswer, MSG_NOSIGNAL);
      ::close(peer);
    }
  }
}

}  // namespace palmshed::tests
