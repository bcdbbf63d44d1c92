#include "faults/course.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "faults/notifier.h"
#include "faults/roles.h"
#include "support/residue.h"

namespace palmshed::tests {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kSoon{2};

[[noreturn]] void BeHost(const Handover& handover, int pipe,
                         const std::function<void(const Progress&)>& host) {
  const Progress progress;
  if (::dup3(pipe, kReportFd, O_CLOEXEC) < 0 || !handover.NotifyFromHere()) ::_exit(1);
  try {
    host(progress);
  } catch (const std::exception& error) {
    progress.Report(std::string("threw ") + error.what());
  }
  std::fflush(nullptr);
  ::_exit(0);
}

std::string EndOf(int status) {
  if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : "exit code " + std::to_string(WEXITSTATUS(status));
}

std::vector<std::string> LinesIn(int pipe) {
  std::string text;
  char buffer[4096];
  for (ssize_t size = 0; (size = ::read(pipe, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(size));
  }
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) lines.push_back(line);
  return lines;
}

/// Follows one host program from the handover of the listener on.
class Watch {
 public:
  Watch(pid_t host, int listener, const AtCall& at_call, const HostKind& kind)
      : host_(host), notifier_(listener), roles_(host), at_call_(at_call), kind_(kind) {}

  Course Run() {
    while (!over_) {
      pollfd ready{.fd = notifier_.fd(), .events = POLLIN, .revents = 0};
      const int count = ::poll(&ready, 1, reaped_ ? kLookSoonMs : kLookMs);
      if (count == 1 && (ready.revents & POLLIN) != 0) {
        OnCall();
      } else if (count == 1 && (ready.revents & POLLHUP) != 0) {
        over_ = true;
      }
      if (count == 0 || ++turns_ % kTurnsPerLook == 0) Look();
    }
    while (!reaped_) Reap(0);
    return std::move(course_);
  }

 private:
  void OnCall() {
    const auto call = notifier_.Receive();
    if (!call) return;
    if (call->data.nr == SYS_prctl && call->data.args[0] == kMarkCall) {
      phase_ = static_cast<Phase>(call->data.args[1]);
      moved_ = Clock::now();
      return notifier_.Answer(*call, 0);
    }
    const int error = Ask(static_cast<pid_t>(call->pid), call->data);
    return error == 0 ? notifier_.Continue(*call) : notifier_.Answer(*call, error);
  }

  int Ask(pid_t thread, const seccomp_data& data) {
    const long number = data.nr;
    const bool counts = phase_ != Phase::kBefore && phase_ != Phase::kAfter;
    int error = 0;
    const Role role = roles_.Of(thread);
    if (counts && role != Role::kWorkload) {
      course_.calls.push_back({.role = role, .phase = phase_, .number = number});
      std::ranges::copy(data.args, course_.calls.back().arguments.begin());
      error = at_call_(course_.calls.back(), roles_);
    }
    const bool changes = number == SYS_execve || number == SYS_execveat || number == SYS_exit ||
                         number == SYS_exit_group;
    if (changes) roles_.Forget(thread);
    return error;
  }

  /// Orphans too: until they are gone from the table of processes the listener may not hang up.
  void Reap(int options) {
    int status = 0;
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, &status, options | __WALL)) > 0) {
      if (pid != host_) continue;
      reaped_ = true;
      moved_ = Clock::now();
      course_.ended = EndOf(status);
    }
    if (pid < 0 && errno == ECHILD) reaped_ = true;
  }

  void Look() {
    Reap(WNOHANG);
    const auto still = Clock::now() - moved_;
    if (reaped_ && kind_.forks) EndFork();
    if (!reaped_ && still > kind_.patience) {
      course_.hung = std::string(ToString(phase_));
      EndAll();
    } else if (reaped_ && still > kSoon) {
      course_.stays = Descendants();
      EndAll();
    }
  }

  /// When nothing else is left.
  void EndFork() {
    const std::vector<std::string> left = Descendants();
    if (left.size() == 1) (void)::kill(std::stoi(left.front()), SIGKILL);
  }

  void EndAll() {
    for (const std::string& process : Descendants()) (void)::kill(std::stoi(process), SIGKILL);
    over_ = true;
  }

  static constexpr unsigned kTurnsPerLook = 64;
  static constexpr int kLookMs = 200;
  static constexpr int kLookSoonMs = 5;

  pid_t host_;
  Notifier notifier_;
  Roles roles_;
  const AtCall& at_call_;
  HostKind kind_;
  Course course_;
  Phase phase_ = Phase::kBefore;
  Clock::time_point moved_ = Clock::now();
  unsigned turns_ = 0;
  bool reaped_ = false;
  bool over_ = false;
};

}  // namespace

std::string_view ToString(Phase phase) {
  constexpr std::array<std::string_view, 6> kNames{"before",  "create", "exec",
                                                   "destroy", "after",  "close"};
  return kNames.at(static_cast<std::size_t>(phase));
}

void Progress::Enter(Phase phase) const { Mark(static_cast<unsigned>(phase)); }

void Progress::Report(const std::string& line) const {
  const std::string whole = line + "\n";
  if (::write(kReportFd, whole.data(), whole.size()) != static_cast<ssize_t>(whole.size()))
    ::_exit(1);
}

std::optional<Course> RunHost(const std::function<void(const Progress&)>& host,
                              const AtCall& at_call, const HostKind& kind) {
  AdoptOrphans();
  Handover handover;
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe2");
  }
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid == 0) BeHost(handover, pipe[1], host);
  ::close(pipe[1]);
  handover.CloseOther();
  const int listener = handover.Receive();
  std::optional<Course> course;
  if (listener >= 0) course = Watch(pid, listener, at_call, kind).Run();
  if (listener < 0) (void)::waitpid(pid, nullptr, 0);
  if (course) course->report = LinesIn(pipe[0]);
  ::close(pipe[0]);
  return course;
}

}  // namespace palmshed::tests
