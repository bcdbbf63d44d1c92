#include "kernel/loop_device.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <expected>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::kernel {
namespace {

/// Somebody else may take a device between its being found free and being configured.
constexpr int kMostAttempts = 16;

/// The settings of a program that is to see nothing of this process.
class SpawnSettings {
 public:
  SpawnSettings() {
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigemptyset(&none);
    ::posix_spawn_file_actions_init(&files_);
    for (const int fd : {0, 1, 2}) {
      ::posix_spawn_file_actions_addopen(&files_, fd, "/dev/null", fd == 0 ? O_RDONLY : O_WRONLY,
                                         0);
    }
    ::posix_spawn_file_actions_addclosefrom_np(&files_, 3);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&files_);
  }

  const posix_spawn_file_actions_t* files() const { return &files_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

Result<void> RunQuietly(const std::string& program, std::vector<std::string> arguments) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::string language = "LC_ALL=C";
  std::array<char*, 2> environment{language.data(), nullptr};
  const SpawnSettings settings;
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, program.c_str(), settings.files(), settings.attributes(),
                                   argv.data(), environment.data());
  if (failed != 0) return std::unexpected(SysError("posix_spawn", failed, program));
  int status = 0;
  pid_t reaped = -1;
  do {
    reaped = ::waitpid(pid, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  // ECHILD: the host program reaps everything. What was to be made shows whether it went well.
  if (reaped < 0 || status == 0) return {};
  const int code = WEXITSTATUS(status);  // NOLINT(misc-include-cleaner): <sys/wait.h>
  return std::unexpected(Error{.code = ErrorCode::kUnknown,
                               .message = program + " failed with status " + std::to_string(code),
                               .op = "mkfs"});
}

}  // namespace

std::string FindMkfsExt4() {
  for (const char* path : {"/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4", "/usr/local/sbin/mkfs.ext4"}) {
    if (::access(path, X_OK) == 0) return path;
  }
  return {};
}

// No journal: nobody needs the file system after a crash. No blocks for root: they would be missing
// from the quota. The tables are zeroed at once, which is free in a sparse file; left for later, a
// thread of the kernel would write them all out.
Result<void> MakeExt4Image(const std::string& mkfs, const std::string& path, std::uint64_t bytes,
                           std::uint64_t inodes) {
  PALMSHED_TRY(const UniqueFd image, sys::Open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  PALMSHED_TRY_VOID(sys::Ftruncate(image.get(), bytes));
  return RunQuietly(mkfs, {"mkfs.ext4", "-q", "-F", "-m", "0", "-N", std::to_string(inodes), "-O",
                           "^has_journal", "-E", "lazy_itable_init=0,nodiscard", path});
}

Result<LoopDevice> AttachLoopDevice(const std::string& image) {
  PALMSHED_TRY(const UniqueFd control, sys::Open("/dev/loop-control", O_RDWR));
  PALMSHED_TRY(const UniqueFd file, sys::Open(image, O_RDWR | O_NOFOLLOW));
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return std::unexpected(SysError("LOOP_CTL_GET_FREE", errno));
    std::string path = "/dev/loop" + std::to_string(number);
    PALMSHED_TRY(UniqueFd device, sys::Open(path, O_RDWR));
    loop_config config{};
    config.fd = static_cast<std::uint32_t>(file.get());
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (::ioctl(device.get(), LOOP_CONFIGURE, &config) == 0) {
      return LoopDevice{.fd = std::move(device), .path = std::move(path)};
    }
    if (errno != EBUSY) return std::unexpected(SysError("LOOP_CONFIGURE", errno, path));
  }
  return std::unexpected(SysError("LOOP_CONFIGURE", EBUSY));
}

}  // namespace palmshed::kernel
