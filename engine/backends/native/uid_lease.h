// Host uids for sandboxes, when the engine is root: one for each live sandbox, never shared.
//
// Leases are byte locks in one file of the state directory, the byte's offset being the uid
// (F_OFD_SETLK, fcntl(2)). The descriptor lives in the sandbox's init, so a uid is free again
// exactly when everything that ran under it is dead. Files of its former owner may still lie below
// a directory that waits for the collector; they are out of reach of the next one, because that
// directory's parents are root's with mode 0700 and no sandbox is shown another's files. Files that
// a program made in a writable mount keep the uid; the search starts at a random place so that a
// uid comes up again late.
#pragma once

#include <cstdint>
#include <string>

#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::backends::native {

/// Uids, and gids of the same numbers, that no account of the host has.
struct UidRange {
  std::uint32_t start = 0;
  std::uint32_t count = 0;
};

/// Just above the range that systemd gives to containers, below 2^31 (uids above it confuse
/// programs that hold one in an int).
inline constexpr UidRange kDefaultUidRange{.start = 0x70000000, .count = 65536};

/// The files that tell which ids are in use. Tests make their own.
struct AccountFiles {
  std::string passwd = "/etc/passwd";
  std::string group = "/etc/group";
  std::string subuid = "/etc/subuid";
  std::string subgid = "/etc/subgid";
  std::string uid_map = "/proc/self/uid_map";
  std::string gid_map = "/proc/self/gid_map";
};

/// The `palmshed` entry of /etc/subuid; without one the default range or, where that overlaps an
/// account, the next of the same size. UNSUPPORTED, with a remedy, for an entry that overlaps
/// others or holds root or nobody, and when nothing is free.
Result<UidRange> ChooseUidRange(const AccountFiles& files);

/// A uid that nobody else on this host has while the lock is held.
class UidLease {
 public:
  /// `state` is the state directory. OVERLOADED when every uid is taken.
  static Result<UidLease> Take(BorrowedFd state, UidRange range);

  std::uint32_t uid() const { return uid_; }
  /// The lock, to be sent to the sandbox's init and closed here; this process stops holding it.
  UniqueFd TakeLock();

 private:
  UidLease(std::uint32_t uid, UniqueFd lock);

  std::uint32_t uid_;
  UniqueFd lock_;
};

}  // namespace palmshed::backends::native
