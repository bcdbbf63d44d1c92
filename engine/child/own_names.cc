// Whose number stands beside the sandbox's name. Without a user namespace a sandbox sees the uid
// that it has on the host, but /etc is the same for all sandboxes of a launcher.
#include <fcntl.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "child/failure.h"
#include "child/raw.h"
#include "child/setup.h"
#include "child/text.h"
#include "child/tree.h"
#include "child/wire.h"

namespace palmshed::child {
namespace {

constexpr std::size_t kMost = 1024;
constexpr std::string_view kOwnLine = "sandbox:";

/// A file of /etc on its way from one place to the other.
class Lines {
 public:
  long Read(const char* path) {
    const long file = OpenAt(AT_FDCWD, path, O_RDONLY);
    if (file < 0) return file;
    const long size = Call(SYS_read, file, bytes_, sizeof bytes_);
    Close(static_cast<int>(file));
    if (size == static_cast<long>(sizeof bytes_)) return -EFBIG;
    size_ = size < 0 ? 0 : static_cast<std::size_t>(size);
    return size;
  }

  /// As `path`; in our own line each number is `id`.
  long Write(const char* path, std::uint64_t id) const {
    const long file = OpenAt(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, 0444);
    if (file < 0) return file;
    std::string_view rest(bytes_, size_);
    bool at_start = true, own = false;
    long written = 0;
    while (!rest.empty() && written >= 0) {
      const std::size_t end = rest.find_first_of(":\n") + 1;
      const std::string_view field = rest.substr(0, end != 0 ? end : rest.size());
      if (at_start) own = field == kOwnLine;
      at_start = field.back() == '\n';
      ShortText text;
      if (own && field.size() > 1 && ParseNumber(field) != 0) {
        text.Append(id).Append(field.substr(field.size() - 1));
      } else {
        text.Append(field);
      }
      written = Call(SYS_write, file, text.c_str(), text.size());
      rest.remove_prefix(field.size());
    }
    Close(static_cast<int>(file));
    return written;
  }

 private:
  char bytes_[kMost];
  std::size_t size_ = 0;
};

long Show(const char* path, std::uint64_t id) {
  constexpr char kMade[] = "/dev/shm/names";
  Lines lines;
  long result = lines.Read(path);
  if (result >= 0) result = lines.Write(kMade, id);
  const long tree = result < 0 ? result : CopyTree(kMade, 0);
  if (tree >= 0) {
    result = AttachTree(static_cast<int>(tree), AT_FDCWD, path);
    Close(static_cast<int>(tree));
  }
  (void)Call(SYS_unlinkat, AT_FDCWD, kMade, 0);
  return tree < 0 ? tree : result;
}

}  // namespace

Failure ShowOwnNames(const SetupPlan& plan) {
  if ((plan.config->flags & kInitOwnNames) == 0) return kSuccess;
  const auto id = static_cast<std::uint64_t>(Call(SYS_getuid));
  for (const char* const path : {"/etc/passwd", "/etc/group"}) {
    const long shown = Show(path, id);
    if (shown < 0) return FailureIf(shown, Step::kOwnNames);
  }
  return kSuccess;
}

}  // namespace palmshed::child
