// Starting the helper as stage and launcher.
#include <fcntl.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "child/image.h"
#include "support/helper_driver.h"

namespace palmshed::testing {
namespace {

constexpr unsigned kMfdExec = 0x10;  // Linux 6.3; older kernels refuse what they don't know.

std::vector<char> HelperBytes(const std::string& path) {
  if (path.empty()) {
    const auto image = child::HelperImage();
    const auto* const first = reinterpret_cast<const char*>(image.data());
    return {first, first + image.size()};
  }
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

UniqueFd HelperFile(const std::string& path) {
  const std::vector<char> bytes = HelperBytes(path);
  UniqueFd file(::memfd_create("palmshed-init", MFD_CLOEXEC | MFD_ALLOW_SEALING | kMfdExec));
  if (!file.valid()) file.reset(::memfd_create("palmshed-init", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (::write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    file.reset();
    return file;
  }
  (void)::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
  return file;
}

std::string Map(std::uint32_t outside) { return "0 " + std::to_string(outside) + " 1\n"; }

// What the child of the fork needs; it must not allocate.
struct StageStart {
  uid_t ordinary_uid;  // 0: stays who it is.
  int socket;
  int engine;
  int helper;
  std::uint64_t max_processes;
  void (*before_exec)();
  const char* argv[6];
};

[[noreturn]] void BecomeStageInChild(const StageStart& start) {
  const uid_t uid = start.ordinary_uid;
  if (uid != 0 && (::setgroups(0, nullptr) < 0 || ::setresgid(uid, uid, uid) < 0 ||
                   ::setresuid(uid, uid, uid) < 0)) {
    ::_exit(3);
  }
  if (start.before_exec != nullptr) start.before_exec();
  if (start.max_processes != 0) {
    const rlimit limit{start.max_processes, start.max_processes};
    (void)::setrlimit(RLIMIT_NPROC, &limit);
  }
  // Upwards first: a source may have the number of a target.
  const int socket = ::fcntl(start.socket, F_DUPFD, 100);
  const int engine = ::fcntl(start.engine, F_DUPFD, 100);
  const int helper = ::fcntl(start.helper, F_DUPFD, 100);
  (void)::dup2(socket, child::kSocketFd);
  (void)::dup2(engine, child::kEnginePidfd);
  (void)::dup2(helper, child::kHelperFd);
  char* const environment[] = {nullptr};
  (void)::syscall(SYS_execveat, child::kHelperFd, "", start.argv, environment, AT_EMPTY_PATH);
  ::_exit(4);
}

}  // namespace

std::uint32_t FirstSandboxUid() {
  return 1'200'000 + static_cast<std::uint32_t>(::getpid() % 1000) * kSandboxUids;
}

std::uint32_t OrdinaryUid() {
  if (::getuid() != 0) return ::getuid();
  return 1'000'000'000 + static_cast<std::uint32_t>(::getpid());
}

/// Root takes on a gid of the same number; an ordinary user can map only the gid it has.
std::uint32_t OrdinaryGid() { return ::getuid() != 0 ? ::getgid() : OrdinaryUid(); }

void ViewRecords::Add(child::ViewOp op, std::uint32_t flags, std::uint32_t mode,
                      const std::string& a, const std::string& b) {
  const child::ViewEntry entry{
      op, flags, mode, static_cast<std::uint32_t>(a.size()), static_cast<std::uint32_t>(b.size()),
      0};
  const auto* const head = reinterpret_cast<const char*>(&entry);
  bytes_.insert(bytes_.end(), head, head + sizeof entry);
  bytes_.insert(bytes_.end(), a.c_str(), a.c_str() + a.size() + 1);
  bytes_.insert(bytes_.end(), b.c_str(), b.c_str() + b.size() + 1);
  bytes_.resize((bytes_.size() + 7) / 8 * 8);
  ++count_;
}

ViewRecords& ViewRecords::Directory(const std::string& path, std::uint32_t mode) {
  Add(child::ViewOp::kDirectory, 0, mode, path, "");
  return *this;
}
ViewRecords& ViewRecords::File(const std::string& path, const std::string& content,
                               std::uint32_t mode) {
  Add(child::ViewOp::kFile, 0, mode, path, content);
  return *this;
}
ViewRecords& ViewRecords::Symlink(const std::string& path, const std::string& target) {
  Add(child::ViewOp::kSymlink, 0, 0, path, target);
  return *this;
}
ViewRecords& ViewRecords::Bind(const std::string& path, const std::string& source,
                               std::uint32_t flags) {
  Add(child::ViewOp::kBind, flags, 0, path, source);
  return *this;
}
ViewRecords& ViewRecords::Proc(const std::string& path) {
  Add(child::ViewOp::kProc, 0, 0555, path, "");
  return *this;
}

std::vector<char> ViewRecords::Message(std::uint32_t launcher_flags) const {
  const child::LauncherConfig config{launcher_flags, count_};
  const auto* const head = reinterpret_cast<const char*>(&config);
  std::vector<char> message = bytes_;
  message.insert(message.begin(), head, head + sizeof config);
  return message;
}

ViewRecords MinimalView() {
  constexpr std::uint32_t kDevice = child::kViewDevice | child::kViewWritable;
  ViewRecords view;
  view.Bind("/usr", "/usr", child::kViewRecursive);
  for (const char* name : {"bin", "sbin", "lib", "lib64"}) {
    view.Symlink(std::string("/") + name, std::string("usr/") + name);
  }
  view.Directory("/etc").File("/etc/passwd", "sandbox:x:1000:1000::/workspace:/bin/sh\n");
  view.Directory("/dev/pts").Directory("/dev/shm").Symlink("/dev/ptmx", "pts/ptmx");
  view.Symlink("/dev/fd", "/proc/self/fd");
  for (const char* name : {"null", "zero", "full", "random", "urandom", "tty"}) {
    const std::string path = std::string("/dev/") + name;
    view.Bind(path, path, kDevice);
  }
  view.Directory("/tmp", 01777).Directory("/workspace").Proc("/proc");
  return view;
}

LauncherProcess::LauncherProcess(LauncherOptions options) : options_(std::move(options)) {
  Start();
  ready_ = Receive();
}

void LauncherProcess::Start() {
  const bool namespaces = (options_.flags & child::kLauncherNoUserNamespace) == 0;
  std::string uid_map = Map(options_.root ? 0 : OrdinaryUid());
  std::string gid_map = Map(options_.root ? 0 : OrdinaryGid());
  if (options_.root) {
    const std::string first = std::to_string(FirstSandboxUid());
    const std::string range = first + " " + first + " " + std::to_string(kSandboxUids) + "\n";
    uid_map += range;
    gid_map += range;
  }
  const std::string flags =
      std::to_string((options_.root ? 0U : child::kStageDenySetgroups) |
                     (namespaces ? 0U : child::kStageNoUserNamespace) | options_.stage_flags);
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) return;
  socket_.reset(pair[0]);
  const UniqueFd stage_end(pair[1]);
  const UniqueFd engine(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  const UniqueFd helper = HelperFile(options_.helper);
  const uid_t become = !options_.root && ::getuid() == 0 ? OrdinaryUid() : 0;
  const StageStart start{
      become,
      stage_end.get(),
      engine.get(),
      helper.get(),
      options_.max_processes,
      options_.before_exec,
      {"palmshed-init", "stage", uid_map.c_str(), gid_map.c_str(), flags.c_str(), nullptr}};
  stage_ = ::fork();
  if (stage_ == 0) BecomeStageInChild(start);
  const std::vector<char> config =
      options_.view.Message(options_.flags | (options_.root ? child::kLauncherRoot : 0U));
  (void)::send(socket_.get(), config.data(), config.size(), MSG_NOSIGNAL);
}

LauncherProcess::~LauncherProcess() {
  socket_.reset();
  if (stage_ > 0) (void)::waitpid(stage_, nullptr, 0);
}

std::uint32_t LauncherProcess::NextSandboxUid() {
  if (options_.root) return next_uid_++;
  return OrdinaryUid();
}

std::optional<child::LauncherReply> LauncherProcess::Receive(UniqueFd* fd, int timeout_ms) {
  ReceivedMessage message = ReceiveWithDeadline(socket_.get(), timeout_ms);
  child::LauncherReply reply;
  if (message.bytes.size() != sizeof reply) return std::nullopt;
  std::memcpy(&reply, message.bytes.data(), sizeof reply);
  if (fd != nullptr && !message.fds.empty()) *fd = std::move(message.fds[0]);
  return reply;
}

}  // namespace palmshed::testing
