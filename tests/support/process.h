// Processes of a test's own.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace palmshed::tests {

/// An ordinary user without an account, a group or anything delegated.
inline constexpr uid_t kPlainUid = 61357;

/// Runs `body` in a child of this process, for what cannot be undone. Its failures are this test's
/// failures. Call it before anything has started a thread.
void InForkedProcess(const std::function<void()>& body);
/// As above, as an ordinary user: no groups, no capabilities, no XDG_RUNTIME_DIR, HOME a directory
/// of its own. Where the test runs as such a user already, as that one.
void AsOrdinaryUser(const std::function<void()>& body);
/// From here on this process cannot make namespaces: clone(2) and unshare(2) answer EPERM and
/// clone3(2) ENOSYS, as under a container runtime's usual filter. False when it cannot be had.
bool RefuseNamespaces();

/// A process that hosts an engine and can be killed without killing the test.
class ChildHost {
 public:
  /// `body` runs in the child; it may call Tell. When it returns, the child exits.
  explicit ChildHost(const std::function<void(ChildHost&)>& body);
  ~ChildHost();
  ChildHost(const ChildHost&) = delete;
  ChildHost& operator=(const ChildHost&) = delete;

  /// In the child: sends a line to the test.
  void Tell(const std::string& line) const;
  /// In the child: blocks until killed.
  [[noreturn]] static void StayForEver();
  /// In the test: the next line, or "" at the child's end or after ten seconds.
  std::string Hear() const;
  void Kill();
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int pipe_[2] = {-1, -1};
};

/// What a program did outside any sandbox.
struct HostRun {
  int exit_code = -1;  ///< 128 + n for signal n.
  std::string out;     ///< Standard output and error.
};
enum class As { kSelf, kPlainUser };
/// Runs a program on the host, by default as an ordinary user: the positive control of what a
/// sandbox must refuse. Its working directory is /.
HostRun RunOnHost(std::vector<std::string> argv, As as = As::kPlainUser);

/// A process of this host, as seen from outside every sandbox.
struct HostProcess {
  pid_t pid = 0;
  uid_t uid = 0;
};
/// All whose name (comm) is `name`, zombies left out.
std::vector<HostProcess> FindProcesses(const std::string& name);
/// A name for a program that nothing else on this host has, short enough for comm.
std::string UniqueName();

/// Where the test programs and their fixtures are.
std::string ProgramDirectory();
/// The probe, a static program; see fixtures/probe.cc.
std::string ProbePath();
/// True where PATH, or one of the usual directories, has such a program.
bool OnPath(const std::string& program);

}  // namespace palmshed::tests
