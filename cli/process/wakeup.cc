#include "cli/process/wakeup.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <cstdint>
#include <expected>
#include <utility>

#include "cli/output/note.h"
#include "cli/process/descriptor.h"
#include "palmshed/error.h"

namespace palmshed::cli {

Result<Wakeup> Wakeup::Create() {
  Descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event.valid()) {
    return std::unexpected(Error{.code = ErrorCode::kOverloaded,
                                 .message = "eventfd: " + NameErrno(errno),
                                 .op = "eventfd",
                                 .sys_errno = errno});
  }
  return Wakeup(std::move(event));
}

void Wakeup::Set() const {
  const std::uint64_t one = 1;
  // Ignoring a failure, because it can only mean that the flag is set to the brim already.
  (void)!::write(event_.get(), &one, sizeof one);
}

void Wakeup::Clear() const {
  std::uint64_t count = 0;
  (void)!::read(event_.get(), &count, sizeof count);  // Ignoring a failure: it was not set.
}

}  // namespace palmshed::cli
