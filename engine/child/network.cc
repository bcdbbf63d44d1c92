#include "child/network.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "child/raw.h"

namespace palmshed::child {

long BringLoopbackUp() {
  const long probe = Call(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return probe;
  ifreq request{};
  request.ifr_name[0] = 'l';
  request.ifr_name[1] = 'o';
  long result = Call(SYS_ioctl, probe, SIOCGIFFLAGS, &request);
  // A spare namespace belongs to the launcher's user namespace: there only the launcher may set it.
  if (result >= 0 && (request.ifr_flags & IFF_UP) == 0) {
    request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
    result = Call(SYS_ioctl, probe, SIOCSIFFLAGS, &request);
  }
  Close(static_cast<int>(probe));
  return result;
}

}  // namespace palmshed::child
