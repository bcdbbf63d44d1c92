// The self-test's other half: tries from inside a sandbox what run/selftest.cc asks about, and
// prints a line "name errno" for each attempt, errno 0 where it succeeded. Harmless in every form:
// signal 0, files of its own, sockets that carry nothing.
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "child/kernel_abi.h"
#include "child/raw.h"
#include "child/roles.h"
#include "child/text.h"

namespace palmshed::child {
namespace {

constexpr int kVsockFamily = 40;
constexpr int kWaitAllKinds = 0x40000000;  ///< __WALL

void Report(std::string_view name, long result) {
  ShortText line;
  line.Append(name).Append(" ").Append(result < 0 ? static_cast<std::uint64_t>(-result) : 0);
  line.Append("\n");
  (void)Call(SYS_write, 1, line.c_str(), line.size());
}

/// Closes what was opened and passes the outcome on.
long Closed(long fd) {
  if (fd >= 0) Close(static_cast<int>(fd));
  return fd;
}

long Read(const char* path) { return Closed(OpenAt(AT_FDCWD, path, O_RDONLY)); }

long Make(const char* path) {
  const long fd = Closed(OpenAt(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, 0600));
  if (fd >= 0) (void)Call(SYS_unlinkat, AT_FDCWD, path, 0);
  return fd;
}

std::string_view Temporary(char** environment) {
  constexpr std::string_view kName = "TMPDIR=";
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    if (variable.starts_with(kName)) return variable.substr(kName.size());
  }
  return "/tmp";
}

long MakeTemporary(std::string_view directory) {
  constexpr std::string_view kName = "/palmshed-probe-file";
  char path[4096];
  if (directory.size() + kName.size() >= sizeof path) return -ENAMETOOLONG;
  std::memcpy(path, directory.data(), directory.size());
  std::memcpy(path + directory.size(), kName.data(), kName.size());
  path[directory.size() + kName.size()] = '\0';
  return Make(path);
}

long Socket(int family, int type) {
  return Closed(Call(SYS_socket, family, type | SOCK_CLOEXEC, 0));
}

sockaddr_in Loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = static_cast<std::uint16_t>(port << 8 | port >> 8);
  address.sin_addr.s_addr = 0x0100007f;
  return address;
}

long Connect(int family, const void* address, std::size_t size) {
  const long fd = Call(SYS_socket, family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fd;
  const long result = Call(SYS_connect, fd, address, size);
  Close(static_cast<int>(fd));
  return result;
}

long ConnectUnix(std::string_view name, bool abstract) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t start = abstract ? 1 : 0;
  if (name.size() + start >= sizeof address.sun_path) return -ENAMETOOLONG;
  for (std::size_t i = 0; i < name.size(); ++i) address.sun_path[start + i] = name[i];
  return Connect(AF_UNIX, &address, offsetof(sockaddr_un, sun_path) + start + name.size());
}

/// A listener on its own loopback, and a connection to it.
long OwnLoopback() {
  const long fd = Call(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fd;
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  long result = Call(SYS_bind, fd, &address, size);
  if (result >= 0) result = Call(SYS_listen, fd, 1);
  if (result >= 0) result = Call(SYS_getsockname, fd, &address, &size);
  if (result >= 0) result = Connect(AF_INET, &address, sizeof address);
  Close(static_cast<int>(fd));
  return result;
}

long OwnSocketPair() {
  int ends[2];
  const long result = Call(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
  if (result < 0) return result;
  Close(ends[0]);
  Close(ends[1]);
  return result;
}

long OwnChild() {
  const long pid = Call(SYS_clone, 17 /* SIGCHLD */, nullptr, nullptr, nullptr, nullptr);
  if (pid == 0) ExitGroup(0);
  if (pid < 0) return pid;
  return Call(SYS_wait4, pid, nullptr, kWaitAllKinds, nullptr);
}

[[noreturn]] void Attempts(char** argv, char** environment) {
  const sockaddr_in host = Loopback(static_cast<std::uint16_t>(ParseNumber(argv[3])));
  Report("host_file", Read(argv[0]));
  Report("host_chmod", Call(SYS_fchmodat, AT_FDCWD, argv[0], 0644));
  Report("host_socket", ConnectUnix(argv[1], false));
  Report("host_abstract", ConnectUnix(argv[2], true));
  Report("host_tcp", Connect(AF_INET, &host, sizeof host));
  Report("host_signal", Call(SYS_kill, ParseNumber(argv[4]), 0));
  Report("write_runtime", Make("/usr/palmshed-probe"));
  Report("raw_socket", Socket(AF_INET, SOCK_RAW));
  Report("packet_socket", Socket(AF_PACKET, SOCK_DGRAM));
  Report("vsock_socket", Socket(kVsockFamily, SOCK_STREAM));
  Report("become_root", Call(SYS_setuid, 0));
  Report("new_user_namespace", Call(SYS_unshare, CLONE_NEWUSER));
  Report("mount", Mount("tmpfs", "/tmp", "tmpfs", 0, nullptr));
  Report("keyring", Call(SYS_keyctl, 0, kKeySessionKeyring, 1));
  std::uint32_t ring_parameters[30] = {};
  Report("io_uring", Closed(Call(SYS_io_uring_setup, 1, ring_parameters)));

  Report("read_runtime", Read("/usr/bin"));
  Report("own_file", Make("palmshed-probe-file"));
  Report("own_tmp", MakeTemporary(Temporary(environment)));
  Report("own_shm", Make("/dev/shm/palmshed-probe-file"));
  Report("own_tcp", OwnLoopback());
  Report("own_socketpair", OwnSocketPair());
  Report("own_child", OwnChild());
  ExitGroup(0);
}

/// Prints, then waits for the end of its input.
[[noreturn]] void Echo() {
  constexpr std::string_view kReady = "ready\n";
  (void)Call(SYS_write, 1, kReady.data(), kReady.size());
  char byte = 0;
  while (Call(SYS_read, 0, &byte, 1) > 0) {
  }
  ExitGroup(0);
}

}  // namespace

void RunProbe(int argc, char** argv) {
  if (argc == 6) Attempts(argv + 1, argv + argc + 1);
  if (argc == 1) Echo();
  ExitGroup(2);
}

}  // namespace palmshed::child
