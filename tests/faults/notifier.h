// Every system call of some processes waits for an answer of the test (seccomp_unotify(2)).
#pragma once

#include <linux/seccomp.h>

#include <optional>

namespace palmshed::tests {

/// The system call, never made, by which a program under test says where it is: its one argument is
/// for the test to read. The answer is 0.
inline constexpr int kMarkCall = 0x70616c6d;

/// What is written there is no step: it is the descriptor that a test's own reports go to.
inline constexpr int kReportFd = 701;

/// In the process under test: says where it is.
void Mark(unsigned where);

/// One end of a socket pair by which the process under test hands over the listener.
class Handover {
 public:
  Handover();
  ~Handover();
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;

  /// In the process under test, while it has one thread: from here on its system calls, and those
  /// of all that it starts, wait for the test, but for those that cannot fail and are made all the
  /// time. False when it cannot be had.
  bool NotifyFromHere() const;
  /// In the test, after its fork: the end of the process under test, so that its death is seen.
  void CloseOther();
  /// In the test: the listener, or -1.
  int Receive() const;

 private:
  int test_ = -1;
  int tested_ = -1;
};

/// The test's side. Each call that has been received has to be answered with one of the others; a
/// caller that has been killed meanwhile makes no difference.
class Notifier {
 public:
  /// Takes the listener over.
  explicit Notifier(int listener);
  ~Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  /// To be polled: readable for a call, hung up when no process is left.
  int fd() const { return listener_; }
  /// The next call; none when its caller has just been killed.
  std::optional<seccomp_notif> Receive() const;
  /// Lets the kernel do it.
  void Continue(const seccomp_notif& call) const;
  /// Answers without doing it; `error` 0 is success with the value 0.
  void Answer(const seccomp_notif& call, int error) const;

 private:
  int listener_;
};

}  // namespace palmshed::tests
