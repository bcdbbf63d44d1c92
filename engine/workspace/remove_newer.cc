#include "workspace/remove_newer.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>

#include "base/sys.h"
#include "base/unique_fd.h"
#include "workspace/disk_usage.h"
#include "workspace/walk_tree.h"

namespace palmshed::workspace {
namespace {

// A directory is read while names go from it, so a pass may miss some; and another gives those a
// try that a first one could not delete before what is in them.
constexpr int kMostPasses = 8;

/// What is old although it was born late enough.
class Exceptions {
 public:
  explicit Exceptions(const Newness& newness)
      : since_(newness.since), known_(newness.but.has_value()) {
    if (known_) but_.insert(newness.but->begin(), newness.but->end());
  }

  enum class Age : std::uint8_t { kOld, kNew, kUnknown };
  Age AgeOf(const struct statx& st) const {
    if ((st.stx_mask & STATX_BTIME) == 0) return Age::kUnknown;
    const FileTime born = BirthOf(st);
    if (born < since_) return Age::kOld;
    if (born > since_) return Age::kNew;
    if (!known_) return Age::kUnknown;
    return but_.contains(IdOf(st)) ? Age::kOld : Age::kNew;
  }

 private:
  FileTime since_;
  bool known_;
  std::unordered_set<FileId, FileIdHash> but_{};
};

using Age = Exceptions::Age;

class NewerRemover final : public TreeVisitor {
 public:
  explicit NewerRemover(const Exceptions& exceptions) : exceptions_(exceptions) {}

  bool See(BorrowedFd directory, const char* name, const struct statx& st) override {
    const Age age = exceptions_.AgeOf(st);
    if (age == Age::kUnknown) left_ = true;
    if (age == Age::kNew && !S_ISDIR(st.stx_mode)) Remove(directory, name, 0);
    return true;
  }

  void Leave(BorrowedFd parent, const char* name, const struct statx& st) override {
    if (exceptions_.AgeOf(st) == Age::kNew) Remove(parent, name, AT_REMOVEDIR);
  }

  bool removed() const { return removed_; }
  bool left() const { return left_; }  ///< Something new, or perhaps new, is still there.

 private:
  void Remove(BorrowedFd parent, const char* name, int flags) {
    if (sys::UnlinkAt(parent, name, flags)) {
      removed_ = true;
    } else {
      left_ = true;
    }
  }

  const Exceptions& exceptions_;
  bool removed_ = false;
  bool left_ = false;
};

}  // namespace

bool RemoveNewer(std::span<const BorrowedFd> roots, const Newness& newness) {
  const Exceptions exceptions(newness);
  for (int pass = 0; pass < kMostPasses; ++pass) {
    NewerRemover remover(exceptions);
    bool walked = true;
    for (const BorrowedFd root : roots) walked = WalkTree(root, remover).has_value() && walked;
    if (walked && !remover.removed()) return !remover.left();
  }
  return false;
}

}  // namespace palmshed::workspace
