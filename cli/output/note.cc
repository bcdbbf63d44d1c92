#include "cli/output/note.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "cli/output/flag_name.h"
#include "palmshed/error.h"

namespace palmshed::cli {
namespace {

/// 0, or the errno that ended it.
int WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

std::string OneLine(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return line;
}

std::string Describe(const Error& error) {
  const std::string_view flag = FlagFor(error.field);
  std::string text = flag.empty() ? error.message : fmt::format("{}: {}", flag, error.message);
  if (error.sys_errno != 0 && text.find(NameErrno(error.sys_errno)) == std::string::npos) {
    const char* name = ::strerrorname_np(error.sys_errno);
    if (name != nullptr) text += fmt::format(" ({})", name);
  }
  if (error.remedy.empty()) return text;
  const bool is_sentence = std::isupper(static_cast<unsigned char>(error.remedy.front())) != 0;
  return text + (is_sentence ? ". " : "; ") + error.remedy;
}

void Note(std::string_view text) {
  // Ignoring a failure, because there is nowhere left to say so.
  (void)WriteAll(STDERR_FILENO, "palmshed: " + OneLine(text) + "\n");
}

bool Print(std::string_view text) {
  const int failure = WriteAll(STDOUT_FILENO, text);
  if (failure != 0) Note("cannot write standard output: " + NameErrno(failure));
  return failure == 0;
}

std::string NameErrno(int sys_errno) {
  const char* name = ::strerrorname_np(sys_errno);
  const char* description = ::strerrordesc_np(sys_errno);
  if (name == nullptr || description == nullptr) return fmt::format("errno {}", sys_errno);
  return fmt::format("{} ({})", description, name);
}

}  // namespace palmshed::cli
