#include "benchmarks/spawn.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "benchmarks/die.h"

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

void Drain(int fd) {
  std::array<char, 4096> buffer;
  while (::read(fd, buffer.data(), buffer.size()) > 0) {
  }
  (void)::close(fd);
}

}  // namespace

Command::Command(std::vector<std::string> argv) : argv_(std::move(argv)) {
  for (std::string& argument : argv_) pointers_.push_back(argument.data());
  pointers_.push_back(nullptr);
}

void Command::Run() const {
  const Pipes pipes = MakePipes();
  const pid_t pid = Spawn(pointers_.data(), pipes);
  (void)::close(pipes.out[1]);
  (void)::close(pipes.err[1]);
  Drain(pipes.out[0]);
  Drain(pipes.err[0]);
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) DieErrno("waitpid");
  if (status != 0) Die(Text() + " ended with wait status " + std::to_string(status));
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
