#include "cli/process/output_writer.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <expected>
#include <span>
#include <utility>

#include "cli/process/wakeup.h"
#include "palmshed/error.h"
#include "palmshed/options.h"

namespace palmshed::cli {
namespace {

std::size_t Index(Stream stream) { return static_cast<std::size_t>(stream); }

int DescriptorOf(Stream stream) {
  return stream == Stream::kStdout ? STDOUT_FILENO : STDERR_FILENO;
}

bool IsRegular(int fd) {
  struct stat st{};
  return ::fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/// write(2) that does not wait, else -1 and EAGAIN. A pipe takes it since Linux 6.4; what does not
/// take it (EOPNOTSUPP) is written, once poll(2) has seen room, in pieces of PIPE_BUF: a writable
/// pipe has room for that much (pipe(7)).
ssize_t WriteWithoutWaiting(int fd, std::span<const std::byte> bytes, bool& plain) {
  if (!plain) {
    const iovec part{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
    const ssize_t written = ::pwritev2(fd, &part, 1, -1, RWF_NOWAIT);
    if (written >= 0 || errno == EAGAIN || errno == EINTR || errno == EPIPE) return written;
    plain = true;
    errno = EAGAIN;  // Not before poll(2) has been asked.
    return -1;
  }
  return ::write(fd, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
}

}  // namespace

Result<OutputWriter> OutputWriter::Create() {
  auto abandoned = Wakeup::Create();
  if (!abandoned) return std::unexpected(std::move(abandoned.error()));
  auto failed = Wakeup::Create();
  if (!failed) return std::unexpected(std::move(failed.error()));
  return OutputWriter(*std::move(abandoned), *std::move(failed));
}

OutputWriter::OutputWriter(Wakeup abandoned, Wakeup failed)
    : abandoned_(std::move(abandoned)),
      failed_(std::move(failed)),
      regular_{IsRegular(STDOUT_FILENO), IsRegular(STDERR_FILENO)} {}

void OutputWriter::Write(Stream stream, std::span<const std::byte> bytes) {
  const int fd = DescriptorOf(stream);
  while (!bytes.empty() && !broken_[Index(stream)]) {
    const ssize_t written = regular_[Index(stream)]
                                ? ::write(fd, bytes.data(), bytes.size())
                                : WriteWithoutWaiting(fd, bytes, plain_[Index(stream)]);
    if (written >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      if (!WaitWritable(fd)) return;
    } else if (errno != EINTR) {
      Fail(stream, errno);
    }
  }
}

/// False when the output has been abandoned.
bool OutputWriter::WaitWritable(int fd) const {
  pollfd waits[]{{.fd = fd, .events = POLLOUT, .revents = 0},
                 {.fd = abandoned_.fd(), .events = POLLIN, .revents = 0}};
  while (::poll(waits, 2, -1) < 0 && errno == EINTR) {
  }
  return waits[0].revents != 0 || waits[1].revents == 0;
}

void OutputWriter::Fail(Stream stream, int sys_errno) {
  broken_[Index(stream)] = true;
  if (failure_) return;
  failure_ = {.stream = stream, .sys_errno = sys_errno};
  failed_.Set();
}

}  // namespace palmshed::cli
