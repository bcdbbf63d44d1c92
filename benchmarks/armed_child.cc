#include "benchmarks/armed_child.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <thread>

#include "benchmarks/die.h"
#include "benchmarks/peers.h"

namespace palmshed::benchmarks {
namespace {

using Streams = std::array<int, 2>;

struct Envelope {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(Streams))> control{};
  char byte = 0;
  iovec vector{&byte, 1};
  msghdr header{};

  Envelope() {
    header.msg_iov = &vector;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  Envelope(const Envelope&) = delete;
  Envelope& operator=(const Envelope&) = delete;
};

void SendStreams(int socket, const Streams& streams) {
  Envelope envelope;
  cmsghdr* control = CMSG_FIRSTHDR(&envelope.header);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof streams);
  std::memcpy(CMSG_DATA(control), &streams, sizeof streams);
  if (::sendmsg(socket, &envelope.header, MSG_NOSIGNAL) != 1) DieErrno("sendmsg");
}

/// In the child, on memory that is shared with the parent: system calls alone.
[[noreturn]] void WaitAndExec(int socket) {
  const pid_t self = ::getpid();
  if (::write(socket, &self, sizeof self) != sizeof self) ::_exit(126);
  Envelope envelope;
  if (::recvmsg(socket, &envelope.header, MSG_CMSG_CLOEXEC) != 1) ::_exit(0);  // Not wanted.
  Streams streams{};
  std::memcpy(&streams, CMSG_DATA(CMSG_FIRSTHDR(&envelope.header)), sizeof streams);
  if (::dup2(streams[0], 1) < 0 || ::dup2(streams[1], 2) < 0) ::_exit(126);
  std::array<char, sizeof kProgram> path{};
  std::memcpy(path.data(), kProgram, sizeof kProgram);
  const std::array<char*, 2> argv{path.data(), nullptr};
  ::execve(path.data(), argv.data(), environ);
  ::_exit(127);
}

// Not inlined: the child runs on this frame while the thread sleeps in vfork.
[[gnu::noinline]] void MakeChild(int socket) {
  const pid_t pid = ::vfork();  // NOLINT(bugprone-unsafe-functions): what is measured
  if (pid < 0) DieErrno("vfork");
  if (pid == 0) WaitAndExec(socket);
}

void DrainAndClose(int fd) {
  std::array<char, 4096> buffer;
  while (::read(fd, buffer.data(), buffer.size()) > 0) {
  }
  (void)::close(fd);
}

}  // namespace

ArmedChild::ArmedChild() {
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socket_.data()) != 0) {
    DieErrno("socketpair");
  }
  parent_ = std::thread([socket = socket_[1]] { MakeChild(socket); });
  if (::read(socket_[0], &pid_, sizeof pid_) != sizeof pid_) Die("no child");
}

ArmedChild::~ArmedChild() {
  // The child has a copy of either end, so closing ours would leave it waiting.
  (void)::shutdown(socket_[0], SHUT_RDWR);
  parent_.join();
  (void)::waitpid(pid_, nullptr, 0);  // It has ended, or ECHILD after Run.
  for (const int fd : socket_) (void)::close(fd);
}

void ArmedChild::Run() {
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  if (::pipe2(out.data(), O_CLOEXEC) != 0) DieErrno("pipe2");
  if (::pipe2(err.data(), O_CLOEXEC) != 0) DieErrno("pipe2");
  SendStreams(socket_[0], {out[1], err[1]});
  (void)::close(out[1]);
  (void)::close(err[1]);
  DrainAndClose(out[0]);
  DrainAndClose(err[0]);
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_) DieErrno("waitpid");
  if (status != 0) Die("the armed child failed");
}

}  // namespace palmshed::benchmarks
