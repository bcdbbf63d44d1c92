#include "backends/native/place.h"

#include <string>
#include <utility>
#include <vector>

#include "backends/native/host.h"
#include "backends/native/state.h"
#include "backends/native/uid_lease.h"
#include "base/faults.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::backends::native {

std::vector<BorrowedFd> Place::Locks() const {
  std::vector<BorrowedFd> fds{home_lock.get()};
  if (uid_lock.valid()) fds.push_back(uid_lock.get());
  return fds;
}

Result<Place> TakeUid(const Host& host) {
  Place place;
  if (host.root) {
    PALMSHED_TRY(auto lease, UidLease::Take(host.directories.state.fd.get(), host.uids));
    place.owner = Faulty("shared-uid") ? host.uids.start : lease.uid();
    place.uid_lock = lease.TakeLock();
  }
  return place;
}

Result<void> MakeHome(const Host& host, const std::string& id, Place& place) {
  PALMSHED_TRY(auto home, SandboxHome::Create(host.directories.workspaces, id, place.owner));
  place.home_lock = home.TakeLock();
  place.home = std::move(home);
  return {};
}

}  // namespace palmshed::backends::native
