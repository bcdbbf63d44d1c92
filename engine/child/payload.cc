#include "child/payload.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "child/failure.h"
#include "child/raw.h"
#include "child/wire.h"

namespace palmshed::child {
namespace {

// Above what execve(2) takes under any stack limit that the engine sets.
constexpr std::uint64_t kMaxPayload = 16U << 20;

// An address, or a negative errno.
long Map(std::size_t bytes, int protection, int flags, int file) {
  return Call(SYS_mmap, nullptr, bytes, protection, MAP_PRIVATE | flags, file, 0);
}

}  // namespace

void Payload::Close() {
  if (file_.address != nullptr) (void)Call(SYS_munmap, file_.address, file_.bytes);
  if (arrays_.address != nullptr) (void)Call(SYS_munmap, arrays_.address, arrays_.bytes);
  Forget();
}

Failure Payload::MapFile(int file, std::uint64_t bytes) {
  struct stat status{};
  const long known = Call(SYS_fstat, file, &status);
  if (known < 0) return FailureIf(known, Step::kRequest);
  if (status.st_size < 0 || static_cast<std::uint64_t>(status.st_size) < bytes) {
    return {Step::kRequest, EBADMSG};  // Reading past the end would be SIGBUS.
  }
  const long address = Map(bytes, PROT_READ, 0, file);
  if (address < 0) return FailureIf(address, Step::kRequest);
  file_ = {AddressIn(address), bytes};
  text_ = static_cast<const char*>(file_.address);
  return kSuccess;
}

Failure Payload::PlacePointers(std::size_t count, PointerSpace* space) {
  pointers_ = space->words;
  if (count <= PointerSpace::kCapacity) return kSuccess;
  const std::size_t bytes = count * sizeof(const char*);
  const long address = Map(bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS, -1);
  if (address < 0) return FailureIf(address, Step::kRequest);
  arrays_ = {AddressIn(address), bytes};
  pointers_ = static_cast<const char**>(arrays_.address);
  return kSuccess;
}

bool Payload::TakeStrings(std::uint32_t count, const char*** next) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto left = static_cast<std::size_t>(end_ - text_);
    const auto* const nul = static_cast<const char*>(memchr(text_, '\0', left));
    if (nul == nullptr) return false;
    *(*next)++ = text_;
    text_ = nul + 1;
  }
  return true;
}

Failure Payload::Open(const ExecRequest& request, const char* inline_bytes, int file,
                      PointerSpace* space) {
  if (request.payload_bytes == 0 || request.payload_bytes > kMaxPayload) {
    return {Step::kRequest, E2BIG};
  }
  text_ = inline_bytes;
  if (file >= 0) {
    const Failure mapped = MapFile(file, request.payload_bytes);
    if (mapped.failed()) return mapped;
  }
  end_ = text_ + request.payload_bytes;
  const std::uint64_t strings =
      std::uint64_t{request.paths} + request.argc + request.envc + 1;  // The directory.
  if (strings > request.payload_bytes) return {Step::kRequest, EBADMSG};
  const Failure placed = PlacePointers(static_cast<std::size_t>(strings) + 2, space);
  if (placed.failed()) return placed;
  const char** next = pointers_;
  paths_ = next;
  if (!TakeStrings(request.paths, &next)) return {Step::kRequest, EBADMSG};
  arguments_ = next;
  if (!TakeStrings(request.argc, &next)) return {Step::kRequest, EBADMSG};
  *next++ = nullptr;
  environment_ = next;
  if (!TakeStrings(request.envc, &next)) return {Step::kRequest, EBADMSG};
  *next++ = nullptr;
  const char** const directory = next;
  if (!TakeStrings(1, &next) || text_ != end_) return {Step::kRequest, EBADMSG};
  directory_ = *directory;
  return kSuccess;
}

}  // namespace palmshed::child
