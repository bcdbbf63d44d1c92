#include "benchmarks/spawn.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "benchmarks/die.h"
#include "benchmarks/trial.h"

namespace palmshed::benchmarks {
namespace {

struct Pipes {
  std::array<int, 2> out{};
  std::array<int, 2> err{};
};

Pipes MakePipes() {
  Pipes pipes;
  if (::pipe2(pipes.out.data(), O_CLOEXEC) != 0) DieErrno("pipe2");
  if (::pipe2(pipes.err.data(), O_CLOEXEC) != 0) DieErrno("pipe2");
  return pipes;
}

// Not inlined: the child runs on its parent's stack, and must not share a frame that goes on.
[[gnu::noinline]] pid_t Spawn(char* const* argv, const Pipes& pipes) {
  const pid_t pid = ::vfork();  // NOLINT(bugprone-unsafe-functions): what is measured
  if (pid < 0) DieErrno("vfork");
  if (pid != 0) return pid;
  if (::dup2(pipes.out[1], 1) < 0 || ::dup2(pipes.err[1], 2) < 0) ::_exit(126);
  ::execve(argv[0], argv, environ);
  ::_exit(127);
}

using Buffer = std::array<char, 4096>;

/// How much of the last piece there is in `buffer`.
std::size_t Drain(int fd, Buffer& buffer) {
  ssize_t last = 0;
  for (ssize_t got = 0; (got = ::read(fd, buffer.data(), buffer.size())) > 0;) last = got;
  (void)::close(fd);
  return static_cast<std::size_t>(last);
}

}  // namespace

Command::Command(std::vector<std::string> argv) : argv_(std::move(argv)) {
  for (std::string& argument : argv_) pointers_.push_back(argument.data());
  pointers_.push_back(nullptr);
}

std::string Command::Try() const {
  const Pipes pipes = MakePipes();
  const pid_t pid = Spawn(pointers_.data(), pipes);
  (void)::close(pipes.out[1]);
  (void)::close(pipes.err[1]);
  Buffer buffer;
  (void)Drain(pipes.out[0], buffer);
  const std::size_t said = Drain(pipes.err[0], buffer);
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) DieErrno("waitpid");
  return status == 0 ? std::string() : WhyEnded(status, {buffer.data(), said});
}

void Command::Run() const {
  if (const std::string why = Try(); !why.empty()) Die(Text() + ": " + why);
}

std::string Command::Text() const {
  std::string text;
  for (const std::string& argument : argv_) text += (text.empty() ? "" : " ") + argument;
  return text;
}

std::string Beside(const std::string& name) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto path = self.parent_path() / name;
  return ::access(path.c_str(), X_OK) == 0 ? path.string() : std::string();
}

}  // namespace palmshed::benchmarks
