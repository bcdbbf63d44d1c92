#include "support/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

constexpr int kSkipped = 77;

[[noreturn]] void RunBody(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "in the forked process: " << error.what();
  }
  std::fflush(nullptr);
  if (::testing::Test::HasFailure()) ::_exit(1);
  ::_exit(::testing::Test::IsSkipped() ? kSkipped : 0);
}

int WaitFor(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void BecomePlainUser() {
  if (::setgroups(0, nullptr) != 0 || ::setresgid(kPlainUid, kPlainUid, kPlainUid) != 0 ||
      ::setresuid(kPlainUid, kPlainUid, kPlainUid) != 0) {
    throw std::system_error(errno, std::generic_category(), "becoming an ordinary user");
  }
  // A change of credentials clears it, and then /proc/self belongs to root.
  (void)::prctl(PR_SET_DUMPABLE, 1);
}

[[noreturn]] void ExecOnHost(const std::vector<std::string>& argv, As as, int output) {
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const bool become = as == As::kPlainUser && ::geteuid() == 0;
  if (::dup2(output, STDOUT_FILENO) < 0 || ::dup2(output, STDERR_FILENO) < 0 || ::chdir("/") != 0 ||
      (become &&
       (::setgroups(0, nullptr) != 0 || ::setresgid(kPlainUid, kPlainUid, kPlainUid) != 0 ||
        ::setresuid(kPlainUid, kPlainUid, kPlainUid) != 0))) {
    ::_exit(126);
  }
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

HostProcess ReadProcess(pid_t pid, const std::string& name) {
  std::istringstream file(SlurpIfThere("/proc/" + std::to_string(pid) + "/status"));
  HostProcess process;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("Name:") && line.substr(6) != name) return {};
    if (line.starts_with("State:") && line.find('Z') != line.npos) return {};
    if (line.starts_with("Uid:")) {
      process = {.pid = pid, .uid = static_cast<uid_t>(std::stoul(line.substr(5)))};
    }
  }
  return process;
}

}  // namespace

void InForkedProcess(const std::function<void()>& body) {
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) RunBody(body);
  const int status = WaitFor(pid);
  if (status == kSkipped) GTEST_SKIP() << "in the forked process";
  EXPECT_EQ(status, 0) << "the forked process failed";
}

void AsOrdinaryUser(const std::function<void()>& body) {
  InForkedProcess([&] {
    const TempDir home;
    if (::geteuid() == 0) {
      ASSERT_EQ(::chown(home.path().c_str(), kPlainUid, kPlainUid), 0);
      BecomePlainUser();
    }
    ::setenv("HOME", home.path().c_str(), 1);
    for (const char* name : {"XDG_RUNTIME_DIR", "XDG_STATE_HOME", "TMPDIR"}) ::unsetenv(name);
    ASSERT_EQ(::chdir("/"), 0);
    body();
  });
}

ChildHost::ChildHost(const std::function<void(ChildHost&)>& body) {
  if (::pipe2(pipe_, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category());
  std::fflush(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category());
  if (pid_ == 0) {
    ::close(pipe_[0]);
    RunBody([&] { body(*this); });
  }
  ::close(pipe_[1]);
}

ChildHost::~ChildHost() {
  Kill();
  ::close(pipe_[0]);
}

void ChildHost::Tell(const std::string& line) const {
  const std::string whole = line + "\n";
  ASSERT_EQ(::write(pipe_[1], whole.data(), whole.size()), static_cast<ssize_t>(whole.size()));
}

void ChildHost::StayForEver() {
  while (true) ::pause();
}

std::string ChildHost::Hear() const {
  std::string line;
  pollfd ready{.fd = pipe_[0], .events = POLLIN, .revents = 0};
  char byte = 0;
  while (::poll(&ready, 1, 10'000) == 1 && ::read(pipe_[0], &byte, 1) == 1) {
    if (byte == '\n') return line;
    line += byte;
  }
  return "";
}

void ChildHost::Kill() {
  if (pid_ <= 0) return;
  (void)::kill(pid_, SIGKILL);
  (void)WaitFor(pid_);
  pid_ = -1;
}

HostRun RunOnHost(std::vector<std::string> argv, As as) {
  int output[2];
  if (::pipe2(output, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category());
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category());
  if (pid == 0) ExecOnHost(argv, as, output[1]);
  ::close(output[1]);
  HostRun run;
  char buffer[4096];
  for (ssize_t size = 0; (size = ::read(output[0], buffer, sizeof buffer)) > 0;) {
    run.out.append(buffer, static_cast<std::size_t>(size));
  }
  ::close(output[0]);
  run.exit_code = WaitFor(pid);
  return run;
}

std::vector<HostProcess> FindProcesses(const std::string& name) {
  std::vector<HostProcess> found;
  DIR* directory = ::opendir("/proc");
  if (directory == nullptr) throw std::system_error(errno, std::generic_category(), "/proc");
  while (const dirent* entry = ::readdir(directory)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    if (const HostProcess process = ReadProcess(pid, name); process.pid != 0) {
      found.push_back(process);
    }
  }
  ::closedir(directory);
  return found;
}

std::string UniqueName() {
  static std::atomic<int> counter = 0;
  std::ostringstream name;
  name << "p" << std::hex << ::getpid() << "n" << counter++;
  return name.str();
}

std::string ProgramDirectory() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

std::string ProbePath() { return ProgramDirectory() + "/kernel_probe"; }

bool OnPath(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream directories(std::string(path == nullptr ? "" : path) +
                                 ":/usr/local/bin:/usr/bin:/bin");
  for (std::string directory; std::getline(directories, directory, ':');) {
    if (::access((directory + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace palmshed::tests
