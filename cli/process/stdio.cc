#include "cli/process/stdio.h"

#include <fcntl.h>
#include <unistd.h>

#include <initializer_list>

namespace palmshed::cli {

bool OpenMissingStdio() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // open(2) returns the lowest free number, which is `fd`: the lower ones are open by now.
    if (::open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) != fd) return false;
  }
  return true;
}

}  // namespace palmshed::cli
