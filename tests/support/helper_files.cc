// Files, descriptors and processes for the helper's tests.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <thread>

#include "child/wire.h"
#include "support/helper_driver.h"

namespace palmshed::testing {
namespace {

using Clock = std::chrono::steady_clock;

int MsUntil(Clock::time_point deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return left > 0 ? static_cast<int>(left) : 0;
}

pid_t ParentOf(const std::string& pid) {
  std::ifstream stat("/proc/" + pid + "/stat");
  std::string line;
  std::getline(stat, line);
  const std::size_t end = line.rfind(')');  // The name may hold anything.
  if (end == std::string::npos) return -1;
  std::istringstream rest(line.substr(end + 1));
  std::string state;
  pid_t parent = -1;
  rest >> state >> parent;
  return parent;
}

}  // namespace

TempDirectory::TempDirectory() {
  const char* const parent = std::getenv("TMPDIR");
  path_ = std::string(parent != nullptr ? parent : "/tmp") + "/palmshed-helper-XXXXXX";
  if (::mkdtemp(path_.data()) == nullptr) path_.clear();
  (void)::chmod(path_.c_str(), 0755);
}

TempDirectory::~TempDirectory() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

bool IsReadable(BorrowedFd fd, int timeout_ms) {
  pollfd watched{fd, POLLIN, 0};
  return ::poll(&watched, 1, timeout_ms) == 1;
}

std::string ReadUntil(BorrowedFd fd, const std::string& text, int timeout_ms) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  std::string all;
  char buffer[65536];
  while (text.empty() || all.find(text) == std::string::npos) {
    if (!IsReadable(fd, MsUntil(deadline))) break;
    const ssize_t size = ::read(fd, buffer, sizeof buffer);
    if (size <= 0) break;
    all.append(buffer, static_cast<std::size_t>(size));
  }
  return all;
}

std::string FileContent(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string ReadAll(BorrowedFd fd, int timeout_ms) { return ReadUntil(fd, "", timeout_ms); }

ReceivedMessage ReceiveWithDeadline(BorrowedFd socket, int timeout_ms) {
  ReceivedMessage message;
  if (!IsReadable(socket, timeout_ms)) return message;
  message.bytes.resize(child::kMaxMessage);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 8)];
  iovec part{message.bytes.data(), message.bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const ssize_t size = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  message.bytes.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  if (size <= 0) return message;
  const cmsghdr* const first = CMSG_FIRSTHDR(&header);
  if (first == nullptr || first->cmsg_type != SCM_RIGHTS) return message;
  const std::size_t count = (first->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  for (std::size_t i = 0; i < count; ++i) {
    int fd;
    std::memcpy(&fd, CMSG_DATA(first) + i * sizeof fd, sizeof fd);
    message.fds.emplace_back(fd);
  }
  return message;
}

pid_t PidOf(BorrowedFd pidfd) {
  std::ifstream file("/proc/self/fdinfo/" + std::to_string(pidfd));
  std::string key;
  pid_t pid = -1;
  while (file >> key) {
    if (key == "Pid:") {
      file >> pid;
      break;
    }
  }
  return pid;
}

std::vector<pid_t> DescendantsOf(pid_t pid) {
  std::multimap<pid_t, pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    children.emplace(ParentOf(name), std::atoi(name.c_str()));
  }
  std::vector<pid_t> found{pid};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [first, last] = children.equal_range(found[i]);
    for (auto child = first; child != last; ++child) found.push_back(child->second);
  }
  found.erase(found.begin());
  return found;
}

std::vector<pid_t> SettledDescendantsOf(pid_t pid, std::size_t expected) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(kDeadlineMs);
  std::vector<pid_t> found = DescendantsOf(pid);
  while (found.size() != expected && Clock::now() < deadline) {
    std::this_thread::yield();
    found = DescendantsOf(pid);
  }
  return found;
}

}  // namespace palmshed::testing
