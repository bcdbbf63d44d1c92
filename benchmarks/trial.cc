#include "benchmarks/trial.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/die.h"

namespace palmshed::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostWords = 300;

std::vector<char*> Pointers(std::vector<std::string>& argv) {
  std::vector<char*> pointers;
  pointers.reserve(argv.size() + 1);
  for (std::string& argument : argv) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  return pointers;
}

[[noreturn]] void BeCommand(char* const* argv, int output) {
  (void)::setsid();
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (::dup2(nothing, 0) < 0 || ::dup2(output, 1) < 0 || ::dup2(output, 2) < 0) ::_exit(126);
  ::execv(argv[0], argv);
  ::_exit(127);
}

/// False when `until` has come before the end of the output.
bool ReadAll(int fd, Clock::time_point until, std::string& text) {
  std::array<char, 4096> buffer{};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&one, 1, static_cast<int>(left.count())) <= 0) return false;
    const auto got = ::read(fd, buffer.data(), buffer.size());
    if (got <= 0) return true;
    if (text.size() < kMostWords) text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

/// One line, of a length that fits into a sentence.
std::string Shortened(std::string text) {
  for (char& letter : text) {
    if (static_cast<unsigned char>(letter) < ' ') letter = ' ';
  }
  while (text.ends_with(' ')) text.pop_back();
  if (text.size() > kMostWords) text = text.substr(0, kMostWords) + "...";
  return text;
}

}  // namespace

std::string Trial(const std::vector<std::string>& argv, std::chrono::milliseconds limit) {
  std::vector<std::string> words = argv;
  const std::vector<char*> pointers = Pointers(words);
  std::array<int, 2> output{};
  if (::pipe2(output.data(), O_CLOEXEC) != 0) DieErrno("pipe2");
  const pid_t pid = ::fork();
  if (pid < 0) DieErrno("fork");
  if (pid == 0) BeCommand(pointers.data(), output[1]);
  (void)::close(output[1]);
  std::string text;
  const bool ended = ReadAll(output[0], Clock::now() + limit, text);
  (void)::close(output[0]);
  if (!ended) (void)::kill(-pid, SIGKILL);
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) DieErrno("waitpid");
  if (!ended) return "did not end in time";
  return status == 0 ? std::string() : WhyEnded(status, std::move(text));
}

std::string WhyEnded(int status, std::string said) {
  said = Shortened(std::move(said));
  return said.empty() ? "ended with wait status " + std::to_string(status) : said;
}

std::string OnPath(const std::string& name) {
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): before any thread
  std::istringstream directories((path == nullptr ? "" : std::string(path)) +
                                 ":/usr/local/sbin:/usr/sbin:/sbin");
  for (std::string directory; std::getline(directories, directory, ':');) {
    if (!directory.starts_with('/')) continue;
    directory.append("/").append(name);
    if (::access(directory.c_str(), X_OK) == 0) return directory;
  }
  return {};
}

}  // namespace palmshed::benchmarks
