#include "faults/notifier.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

namespace palmshed::tests {
namespace {

/// Where the handover's descriptor is while the filter lets it through: nobody else has that one.
constexpr int kHandoverFd = 700;

// Newer than the headers of Debian 12 (Linux 6.6).
constexpr unsigned long kSetFlags = _IOW('!', 4, __u64);
constexpr unsigned long kSyncWakeUp = 1;

/// They cannot fail, or a failure is not theirs to report, and some are made all the time.
constexpr std::initializer_list<long> kUnseen = {
    SYS_futex,  SYS_clock_gettime, SYS_rt_sigprocmask, SYS_rt_sigreturn,    SYS_restart_syscall,
    SYS_brk,    SYS_getpid,        SYS_gettid,         SYS_getuid,          SYS_geteuid,
    SYS_getgid, SYS_getegid,       SYS_getppid,        SYS_madvise,         SYS_munmap,
    SYS_pause,  SYS_rseq,          SYS_sched_yield,    SYS_set_tid_address, SYS_set_robust_list};

sock_filter Return(unsigned action) { return BPF_STMT(BPF_RET | BPF_K, action); }
sock_filter Load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset));
}
sock_filter SkipUnless(long value, unsigned char skipped) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(value), 0, skipped);
}

/// Leaves the number of the call loaded where it is another.
void AllowOn(long call, int fd, std::vector<sock_filter>& program) {
  program.push_back(SkipUnless(call, 4));
  program.push_back(Load(offsetof(seccomp_data, args[0])));
  program.push_back(SkipUnless(fd, 1));
  program.push_back(Return(SECCOMP_RET_ALLOW));
  program.push_back(Load(offsetof(seccomp_data, nr)));
}

std::vector<sock_filter> Program() {
  std::vector<sock_filter> program{Load(offsetof(seccomp_data, nr))};
  for (const long call : kUnseen) {
    program.push_back(SkipUnless(call, 1));
    program.push_back(Return(SECCOMP_RET_ALLOW));
  }
  AllowOn(SYS_sendmsg, kHandoverFd, program);
  AllowOn(SYS_write, kReportFd, program);
  program.push_back(Return(SECCOMP_RET_USER_NOTIF));
  return program;
}

/// Privileged processes need no no_new_privs, so that whether the engine sets it can be seen.
long LoadProgram() {
  std::vector<sock_filter> program = Program();
  sock_fprog whole{.len = static_cast<unsigned short>(program.size()), .filter = program.data()};
  constexpr unsigned kFlags =
      SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
  if (::geteuid() != 0) (void)::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, kFlags, &whole);
}

struct DescriptorMessage {
  DescriptorMessage() {
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }

  char byte = 'l';
  iovec data{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
};

bool SendDescriptor(int socket, int fd) {
  DescriptorMessage message;
  cmsghdr* const part = CMSG_FIRSTHDR(&message.header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(part), &fd, sizeof fd);
  return ::sendmsg(socket, &message.header, MSG_NOSIGNAL) == 1;
}

}  // namespace

void Mark(unsigned where) { (void)::prctl(kMarkCall, where, 0, 0, 0); }

Handover::Handover() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  test_ = ends[0];
  tested_ = ends[1];
}

Handover::~Handover() {
  ::close(test_);
  CloseOther();
}

void Handover::CloseOther() {
  if (tested_ >= 0) ::close(std::exchange(tested_, -1));
}

bool Handover::NotifyFromHere() const {
  const int socket = ::dup3(tested_, kHandoverFd, O_CLOEXEC);
  if (socket < 0) return false;
  const auto listener = static_cast<int>(LoadProgram());
  if (listener < 0) {
    ::close(socket);
    return false;
  }
  if (!SendDescriptor(socket, listener)) ::_exit(1);  // Nobody would answer.
  ::close(listener);
  ::close(socket);
  return true;
}

int Handover::Receive() const {
  DescriptorMessage message;
  ssize_t size = 0;
  while ((size = ::recvmsg(test_, &message.header, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  const cmsghdr* const part = size == 1 ? CMSG_FIRSTHDR(&message.header) : nullptr;
  int listener = -1;
  if (part != nullptr) std::memcpy(&listener, CMSG_DATA(part), sizeof listener);
  return listener;
}

Notifier::Notifier(int listener) : listener_(listener) {
  (void)::ioctl(listener_, kSetFlags, kSyncWakeUp);  // Quicker, where the kernel knows it.
}

Notifier::~Notifier() { ::close(listener_); }

std::optional<seccomp_notif> Notifier::Receive() const {
  seccomp_notif call{};
  if (::ioctl(listener_, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) return std::nullopt;
  return call;
}

void Notifier::Continue(const seccomp_notif& call) const {
  seccomp_notif_resp answer{
      .id = call.id, .val = 0, .error = 0, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
  (void)::ioctl(listener_, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

void Notifier::Answer(const seccomp_notif& call, int error) const {
  seccomp_notif_resp answer{.id = call.id, .val = 0, .error = -error, .flags = 0};
  (void)::ioctl(listener_, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

}  // namespace palmshed::tests
