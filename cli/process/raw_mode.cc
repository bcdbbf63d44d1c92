#include "cli/process/raw_mode.h"

#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>

namespace palmshed::cli {
namespace {

// Handlers get no argument of ours. What they read is written before they are installed, and what
// they call is async-signal-safe (signal-safety(7)).
termios modes_before{};
termios raw_modes{};
std::atomic<bool> has_modes{false};  ///< `modes_before` are to be restored.
std::atomic<bool> wants_raw{false};
static_assert(std::atomic<bool>::is_always_lock_free);

// Those that end a process that does not catch them, but for the ones that StopSignals has.
constexpr std::array kFatal{SIGQUIT, SIGABRT, SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,    SIGSYS, SIGTRAP,
                            SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF};

struct Handled {
  int signal;
  struct sigaction before;
};
std::array<Handled, kFatal.size() + 2> handled{};
std::size_t handled_count = 0;

/// In the background setting modes would stop us, and the modes are somebody else's there.
bool InForeground() {
  const pid_t foreground = ::tcgetpgrp(STDIN_FILENO);
  return foreground < 0 || foreground == ::getpgrp();
}

void EnterRaw() {
  if (wants_raw && InForeground()) (void)::tcsetattr(STDIN_FILENO, TCSANOW, &raw_modes);
}

/// The handler has been taken away by then (SA_RESETHAND), so this signal does what it would do.
void OnFatal(int signal) {
  RestoreTerminal();
  (void)::raise(signal);
}

void OnStop(int) {
  const int saved = errno;
  RestoreTerminal();
  (void)::kill(::getpid(), SIGSTOP);
  errno = saved;
}

/// The window may have changed while others were in the foreground.
void OnContinue(int) {
  const int saved = errno;
  EnterRaw();
  (void)::raise(SIGWINCH);
  errno = saved;
}

void Handle(int signal, void (*handler)(int), unsigned flags) {
  struct sigaction before{};
  if (::sigaction(signal, nullptr, &before) < 0 || before.sa_handler == SIG_IGN) return;
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = static_cast<int>(flags);
  handled[handled_count++] = {.signal = signal, .before = before};
  (void)::sigaction(signal, &action, nullptr);
}

}  // namespace

void RestoreTerminal() {
  if (has_modes && InForeground()) (void)::tcsetattr(STDIN_FILENO, TCSANOW, &modes_before);
}

RawMode::RawMode() {
  if (::tcgetattr(STDIN_FILENO, &modes_before) < 0) return;  // It has hung up meanwhile.
  raw_modes = modes_before;
  ::cfmakeraw(&raw_modes);
  has_modes = true;
  wants_raw = true;
  handled_count = 0;
  for (const int signal : kFatal) Handle(signal, OnFatal, SA_RESETHAND | SA_NODEFER);
  Handle(SIGTSTP, OnStop, SA_RESTART);
  Handle(SIGCONT, OnContinue, SA_RESTART);
  // Started in the background we stop here, and go on in the foreground.
  (void)::tcsetattr(STDIN_FILENO, TCSANOW, &raw_modes);
}

/// In this order: a signal at any point finds the terminal restored, or restores it.
RawMode::~RawMode() {
  wants_raw = false;
  RestoreTerminal();
  has_modes = false;
  for (std::size_t i = 0; i < handled_count; ++i) {
    (void)::sigaction(handled[i].signal, &handled[i].before, nullptr);
  }
}

}  // namespace palmshed::cli
