// The engine's end of an execution's terminal (child/terminal.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/options.h"

namespace palmshed::run {

/// One thread at a time: until the loop sees it the one that starts the program, then the loop's.
class Terminal {
 public:
  /// More than it can hold of what nobody has read: the kernel keeps some 12 KiB
  /// (drivers/tty/pty.c, n_tty.c).
  static constexpr std::uint64_t kMostHeld = 256U << 10;

  /// A terminal is wanted. The socket that is to be given to the program's child.
  Result<UniqueFd> Ask();
  /// Where it comes from; not valid once it is there, or will not come.
  BorrowedFd awaited() const { return socket_.get(); }
  /// The master's ends for reading and for writing, the first time that it is there; nullopt: not
  /// yet, or not any more. An error: it came and could not be received, and will not come again.
  struct Ends {
    UniqueFd out;
    UniqueFd in;
  };
  Result<std::optional<Ends>> Take();
  /// Tells the foreground process group; before it is there, the size that it will have.
  void Resize(TerminalSize size);
  /// Hangs up.
  void Close();

 private:
  void SetSize(TerminalSize size) const;

  UniqueFd socket_{};
  UniqueFd master_{};
  UniqueFd slave_{};  ///< Held, so that the master never comes to an end before the execution does.
  std::optional<TerminalSize> size_{};  ///< Asked for before it was there.
};

/// The bytes that mean end of input on the terminal at this moment, as its line discipline has them
/// set: the end-of-file character, twice after a line that has not ended, whose first one only
/// hands that line over (termios(3), VEOF). Empty where the program has switched it off.
Result<std::string> EndOfInput(BorrowedFd terminal, bool after_line);

}  // namespace palmshed::run
