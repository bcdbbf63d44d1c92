#include "base/processors.h"

#include <unistd.h>

namespace palmshed {

unsigned OnlineProcessors() {
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  return online < 1 ? 1U : static_cast<unsigned>(online);
}

}  // namespace palmshed
