#include "cli/process/input_feed.h"

#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <vector>

#include "cli/output/note.h"
#include "palmshed/error.h"
#include "palmshed/execution.h"

namespace palmshed::cli {
namespace {

constexpr std::size_t kPiece = 64U << 10;

bool IsRegular(int fd) {
  struct stat st{};
  return ::fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/// Does not wait even if another reader of the same pipe was faster, where the kernel knows how
/// (pipes since Linux 6.4).
ssize_t ReadWithoutWaiting(std::span<std::byte> into, bool regular) {
  const iovec part{.iov_base = into.data(), .iov_len = into.size()};
  if (!regular) {
    const ssize_t size = ::preadv2(STDIN_FILENO, &part, 1, -1, RWF_NOWAIT);
    if (size >= 0 || errno == EAGAIN || errno == EINTR) return size;
  }
  return ::read(STDIN_FILENO, into.data(), into.size());
}

}  // namespace

InputFeed::InputFeed(Execution& execution)
    : execution_(execution), buffer_(kPiece), regular_(IsRegular(STDIN_FILENO)) {}

int InputFeed::fd() const { return open_ && !congested() ? STDIN_FILENO : -1; }

void InputFeed::Pump() {
  if (!open_) return;
  if (!congested()) Read();
  if (congested()) Offer();
}

void InputFeed::Read() {
  const ssize_t size = ReadWithoutWaiting(buffer_, regular_);
  if (size > 0) {
    pending_ = std::span(buffer_).first(static_cast<std::size_t>(size));
    return;
  }
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size < 0) Note("cannot read standard input: " + NameErrno(errno));
  Finish();
}

void InputFeed::Offer() {
  const auto taken = execution_.Write(pending_);
  if (!taken && taken.error().code == ErrorCode::kOverloaded) return;
  pending_ = {};
  // The program has closed its input or ended: what else we are given has no reader.
  if (!taken) Finish();
}

void InputFeed::Finish() {
  open_ = false;
  (void)execution_.CloseStdin();  // Ignoring a failure, because it means that it is closed.
}

}  // namespace palmshed::cli
