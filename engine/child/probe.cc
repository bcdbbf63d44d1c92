// The self-test's other half: tries from inside a sandbox what run/selftest.cc asks about, and
// prints a line "name errno" for each attempt, errno 0 where it succeeded. Harmless in every form:
// signal 0, files of its own, sockets that carry nothing, and no more of anything than was asked
// for.
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string_view>

#include "child/kernel_abi.h"
#include "child/raw.h"
#include "child/roles.h"
#include "child/text.h"

namespace palmshed::child {
namespace {

constexpr int kVsockFamily = 40;
constexpr int kWaitAllKinds = 0x40000000;  ///< __WALL

void PrintLine(std::string_view name, std::uint64_t number) {
  ShortText line;
  line.Append(name).Append(" ").Append(number).Append("\n");
  (void)Call(SYS_write, 1, line.c_str(), line.size());
}

void Report(std::string_view name, long result) {
  PrintLine(name, result < 0 ? static_cast<std::uint64_t>(-result) : 0);
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

[[noreturn]] void EndWithInput() {
  char byte = 0;
  while (Call(SYS_read, 0, &byte, 1) > 0) {
  }
  ExitGroup(0);
}

long OpenToWrite(const char* path) { return Closed(OpenAt(AT_FDCWD, path, O_WRONLY)); }

[[noreturn]] void Mounted(const char* read_only, const char* writable) {
  Report("read_only_read", Read(read_only));
  Report("read_only_write", OpenToWrite(read_only));
  Report("writable_write", OpenToWrite(writable));
  ExitGroup(0);
}

/// The kernel ends each line with a carriage return, which numbers do not mind.
[[noreturn]] void Terminal() {
  constexpr std::string_view kNames[] = {"stdin", "stdout", "stderr"};
  winsize size{};
  for (int fd = 0; fd <= 2; ++fd) Report(kNames[fd], Call(SYS_ioctl, fd, TIOCGWINSZ, &size));
  Report("dev_tty", Closed(OpenAt(AT_FDCWD, "/dev/tty", O_RDWR)));
  PrintLine("rows", size.ws_row);
  PrintLine("columns", size.ws_col);
  char byte = 0;
  Report("end_of_input", Call(SYS_read, 0, &byte, 1));
  ExitGroup(0);
}

[[noreturn]] void Echo() {
  PrintLine("ready", 0);
  EndWithInput();
}

/// What was used up stays in use until the input ends; where it could not be had, that is the end.
[[noreturn]] void Hold(std::string_view name, long result) {
  Report(name, result);
  if (result < 0) ExitGroup(1);
  EndWithInput();
}

[[noreturn]] void UseMemory(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  const long mapped =
      Call(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped < 0 && mapped > -static_cast<long>(kPage)) Hold("memory", mapped);
  auto* memory = static_cast<volatile char*>(AddressIn(mapped));
  for (std::size_t at = 0; at < bytes; at += kPage) memory[at] = 1;
  Hold("memory", 0);
}

[[noreturn]] void UseProcesses(std::size_t count) {
  std::array<long, 64> children{};
  long result = 0;
  std::size_t made = 0;
  while (result >= 0 && made < count && made < children.size()) {
    result = Call(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
    if (result == 0) {
      for (;;) (void)Poll(nullptr, 0, kNoTimeout);
    }
    if (result > 0) children[made++] = result;
  }
  for (std::size_t i = 0; i < made; ++i) {
    (void)Call(SYS_kill, children[i], SIGKILL);
    (void)Call(SYS_wait4, children[i], nullptr, kWaitAllKinds, nullptr);
  }
  Hold("fork", result);
}

std::uint64_t CpuTimeNs() {
  timespec used{};
  (void)Call(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(used.tv_nsec);
}

/// Computes until either time is over; zero does not count.
[[noreturn]] void UseCpu(std::uint64_t cpu_ms, std::uint64_t wall_ms) {
  constexpr std::uint64_t kMs = 1'000'000;
  const std::uint64_t end = NowNs() + wall_ms * kMs;
  while ((cpu_ms == 0 || CpuTimeNs() < cpu_ms * kMs) && (wall_ms == 0 || NowNs() < end)) {
    volatile int work = 0;
    while (work < 5'000) work = work + 1;
  }
  PrintLine("cpu_ms", CpuTimeNs() / kMs);
  EndWithInput();
}

[[noreturn]] void UseDisk(std::size_t bytes) {
  constexpr char kFile[] = "palmshed-probe-bulk";
  char chunk[64 << 10];
  const long file = OpenAt(AT_FDCWD, kFile, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0) Hold("write", file);
  long result = 0;
  for (std::size_t written = 0; written < bytes && result >= 0;
       written += static_cast<std::size_t>(result)) {
    // Numbers, since a file system may keep zeros for nothing.
    for (std::size_t i = 0; i < sizeof chunk; ++i) chunk[i] = static_cast<char>(i + written / 7);
    result = Call(SYS_write, file, chunk, sizeof chunk);
  }
  Hold("write", result);
}

}  // namespace

void RunProbe(int argc, char** argv) {
  const std::string_view role = argc > 0 ? argv[0] : "";
  const auto number = [&](int i) { return i < argc ? ParseNumber(argv[i]) : 0; };
  if (role == "attempts" && argc == 6) Attempts(argv + 1, argv + argc + 1);
  if (role == "echo") Echo();
  if (role == "mounted" && argc == 3) Mounted(argv[1], argv[2]);
  if (role == "terminal") Terminal();
  if (role == "memory") UseMemory(number(1));
  if (role == "forks") UseProcesses(number(1));
  if (role == "cpu") UseCpu(number(1), number(2));
  if (role == "write") UseDisk(number(1));
  ExitGroup(2);
}

}  // namespace palmshed::child
