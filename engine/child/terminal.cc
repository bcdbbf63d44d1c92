#include "child/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "child/failure.h"
#include "child/message.h"
#include "child/raw.h"
#include "child/wire.h"

namespace palmshed::child {
namespace {

long SetSize(int master, const TerminalPlan& plan) {
  const winsize size{.ws_row = plan.rows, .ws_col = plan.columns, .ws_xpixel = 0, .ws_ypixel = 0};
  return Call(SYS_ioctl, master, TIOCSWINSZ, &size);
}

// As every terminal emulator does: else erasing a character of more than one byte leaves a part of
// it in the line.
long ErasePerCharacter(int slave) {
  termios modes{};
  const long known = Call(SYS_ioctl, slave, TCGETS, &modes);
  if (known < 0) return known;
  modes.c_iflag |= IUTF8;
  return Call(SYS_ioctl, slave, TCSETS, &modes);
}

// Not by its path, which would be a second look-up (ioctl_tty(2), Linux 4.13).
long OpenSlave(int master) {
  const int unlock = 0;
  const long unlocked = Call(SYS_ioctl, master, TIOCSPTLCK, &unlock);
  if (unlocked < 0) return unlocked;
  return Call(SYS_ioctl, master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

// The engine's end does not wait.
long OpenMaster() { return OpenAt(AT_FDCWD, "/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK); }

long SendEnds(int engine, int master, int slave) {
  const char nothing = 0;  // A message without a byte looks like the end of the socket.
  const int ends[] = {master, slave};
  return SendWithFds(engine, &nothing, sizeof nothing, ends, 2);
}

long UseAsStdio(int slave) {
  for (int fd = 0; fd <= 2; ++fd) {
    const long result = Call(SYS_dup3, slave, fd, 0);
    if (result < 0) return result;
  }
  return 0;
}

}  // namespace

Failure TakeTerminal(const TerminalPlan& plan) {
  const long master = OpenMaster();
  if (master < 0) return FailureIf(master, Step::kTerminal);
  const long slave = OpenSlave(static_cast<int>(master));
  if (slave < 0) return FailureIf(slave, Step::kTerminal);
  const int ends[] = {static_cast<int>(master), static_cast<int>(slave)};
  long result = SetSize(ends[0], plan);
  if (result >= 0) result = ErasePerCharacter(ends[1]);
  if (result >= 0) result = Call(SYS_ioctl, ends[1], TIOCSCTTY, 0);
  if (result >= 0) result = SendEnds(plan.engine, ends[0], ends[1]);
  if (result >= 0) result = UseAsStdio(ends[1]);
  return FailureIf(result, Step::kTerminal);
}

}  // namespace palmshed::child
