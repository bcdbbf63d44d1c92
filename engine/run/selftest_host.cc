#include "run/selftest_host.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <string>
#include <utility>

#include "base/ids.h"
#include "base/result.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "run/selftest_directory.h"

namespace palmshed::run {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

Address Loopback(std::uint16_t port) {
  Address address;
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  in.sin_port = htons(port);
  std::memcpy(&address.storage, &in, sizeof in);
  address.size = sizeof in;
  return address;
}

/// `name` starts with NUL for an abstract socket (unix(7)).
Address Unix(const std::string& name) {
  Address address;
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  PALMSHED_CHECK(name.size() < sizeof un.sun_path);
  std::memcpy(un.sun_path, name.data(), name.size());
  std::memcpy(&address.storage, &un, sizeof un);
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  return address;
}

const sockaddr* Generic(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.storage);
}

Result<UniqueFd> Socket(const Address& address) {
  UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return std::unexpected(SysError("socket", errno));
  return fd;
}

Result<UniqueFd> Listener(const Address& address) {
  PALMSHED_TRY(auto fd, Socket(address));
  if (::bind(fd.get(), Generic(address), address.size) < 0 || ::listen(fd.get(), 16) < 0) {
    return std::unexpected(SysError("bind", errno));
  }
  return fd;
}

Result<void> Reach(const Address& address) {
  PALMSHED_TRY(const UniqueFd fd, Socket(address));
  if (::connect(fd.get(), Generic(address), address.size) < 0) {
    return std::unexpected(SysError("connect", errno, "to the self-test's own listener"));
  }
  return {};
}

Result<std::uint16_t> PortOf(BorrowedFd socket) {
  sockaddr_in in{};
  socklen_t size = sizeof in;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&in), &size) < 0) {
    return std::unexpected(SysError("getsockname", errno));
  }
  return ntohs(in.sin_port);
}

}  // namespace

Result<HostTargets> HostTargets::Create() {
  PALMSHED_TRY(auto directory, SelfTestDirectory::Create());
  HostTargets targets(std::move(directory));
  PALMSHED_TRY_VOID(targets.directory_.AddFile(kFile, 0644));
  PALMSHED_TRY_VOID(targets.Listen());
  PALMSHED_TRY_VOID(targets.CheckReachable());
  return targets;
}

Result<void> HostTargets::Listen() {
  abstract_name_ = MakeId("palmshed-self-test-");
  PALMSHED_TRY(tcp_, Listener(Loopback(0)));
  PALMSHED_TRY(port_, PortOf(tcp_.get()));
  PALMSHED_TRY(abstract_, Listener(Unix(std::string(1, '\0') + abstract_name_)));
  PALMSHED_TRY(path_, Listener(Unix(socket())));
  if (::chmod(socket().c_str(), 0777) < 0) return std::unexpected(SysError("chmod", errno));
  return {};
}

Result<void> HostTargets::CheckReachable() const {
  PALMSHED_TRY_VOID(sys::Open(file(), O_RDONLY));
  if (::chmod(file().c_str(), 0644) < 0) return std::unexpected(SysError("chmod", errno, file()));
  PALMSHED_TRY_VOID(Reach(Loopback(port_)));
  PALMSHED_TRY_VOID(Reach(Unix(std::string(1, '\0') + abstract_name_)));
  return Reach(Unix(socket()));
}

}  // namespace palmshed::run
