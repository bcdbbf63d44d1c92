#include "backends/native/host.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <expected>
#include <future>
#include <string>
#include <string_view>
#include <utility>

#include "backends/native/runtimes.h"
#include "backends/native/state_paths.h"
#include "backends/native/subordinate_gids.h"
#include "backends/native/uid_lease.h"
#include "base/faults.h"
#include "base/result.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "child/image.h"
#include "child/wire.h"
#include "kernel/landlock.h"
#include "palmshed/error.h"
#include "palmshed/options.h"

namespace palmshed::backends::native {
namespace {

// memfd_create(2): all seals, F_SEAL_EXEC (Linux 6.3) left out because older kernels refuse it.
constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The variables that say where runtimes keep their files.
Env RuntimeVariables() {
  Env env;
  for (const char* name :
       {"PYENV_ROOT", "PYENV_VERSION", "RUSTUP_HOME", "CARGO_HOME", "RUSTUP_TOOLCHAIN", "NVM_DIR",
        "SDKMAN_DIR", "ASDF_DIR", "ASDF_DATA_DIR", "GOROOT", "JAVA_HOME", "RBENV_VERSION",
        "NODENV_VERSION", "GOENV_VERSION"}) {
    if (std::string value = FromEnvironment(name); !value.empty()) {
      env.emplace_back(name, std::move(value));
    }
  }
  return env;
}

Result<UniqueFd> SealedMemfd() {
  PALMSHED_TRY(auto file, sys::MemfdCreate("palmshed-init", true));
  PALMSHED_TRY_VOID(sys::WriteAll(file.get(), child::HelperImage()));
  if (::fcntl(file.get(), F_ADD_SEALS, kSeals) < 0) {
    return std::unexpected(SysError("fcntl(F_ADD_SEALS)", errno));
  }
  return file;
}

/// Read-only and without a name: nobody can write to it any more. As with a memory file, whoever
/// has it may run it: an init that a launcher makes is no longer of this user by then.
Result<UniqueFd> UnlinkedFile(const std::string& directory) {
  const std::string path = directory + "/.palmshed-init-" + std::to_string(::gettid());
  (void)::unlink(path.c_str());  // That of an engine which was killed before it came to the next.
  PALMSHED_TRY(const UniqueFd out, sys::Open(path, O_WRONLY | O_CREAT | O_EXCL, 0700));
  auto opened = sys::Open(path, O_RDONLY);
  (void)::unlink(path.c_str());
  if (!opened) return opened;
  PALMSHED_TRY_VOID(sys::WriteAll(out.get(), child::HelperImage()));
  PALMSHED_TRY_VOID(sys::Fchmod(out.get(), 0755));
  return opened;
}

bool MayExecute(BorrowedFd file) {
  return ::faccessat(file, "", X_OK, AT_EMPTY_PATH | AT_EACCESS) == 0;
}

bool MemfdsMayRun() {
  auto setting = sys::ReadFile("/proc/sys/vm/memfd_noexec");
  return !setting || !setting->starts_with("2");
}

/// `memory`: why it is not in a memory file. EACCES is what vm.memfd_noexec=2 answers.
Error NowhereToRun(const Error& memory, const std::string& directory) {
  const bool setting = memory.sys_errno == EACCES;
  const std::string root = "set a workspace root that is not mounted noexec";
  return Unsupported("the helper program",
                     (setting ? "vm.memfd_noexec is 2" : memory.message) + " and " + directory +
                         " may not hold programs",
                     setting ? "sudo sysctl -w vm.memfd_noexec=1, or " + root : root);
}

}  // namespace

Result<UniqueFd> MakeHelper(const std::string& directory) {
  auto memory = MemfdsMayRun() ? SealedMemfd() : std::unexpected(SysError("memfd_create", EACCES));
  if (memory || memory.error().code == ErrorCode::kOverloaded) return memory;
  auto file = UnlinkedFile(directory);
  if (!file) return std::unexpected(FsError(file.error(), directory));
  if (MayExecute(file->get())) return file;
  return std::unexpected(NowhereToRun(memory.error(), directory));
}

Result<Host> DiscoverHost(const EngineOptions& options) {
  Host host{.root = ::geteuid() == 0,
            .extra_groups = HasExtraGroups(),
            .landlock_abi = kernel::LandlockAbi(),
            .environment = ReadHostEnvironment()};
  if (Faulty("landlock-without-scopes")) host.landlock_abi = kernel::kLandlockAbiWithScopes - 1;
  PALMSHED_TRY(host.directories, OpenHostDirectories(host.environment, options.workspace_root));
  if (host.root) {
    PALMSHED_TRY(host.uids, ChooseUidRange({}));
  }
  if (!host.root && host.extra_groups && ::access(child::kNewgidmap, X_OK) == 0) {
    host.spare_gid = FirstSubordinateGid(::getuid(), {});
  }
  PALMSHED_TRY(host.helper, MakeHelper(host.directories.workspaces.path));
  const std::string path =
      options.search_path.empty() ? FromEnvironment("PATH") : options.search_path;
  host.runtimes = std::async(std::launch::deferred,
                             [path, home = FromEnvironment("HOME"), env = RuntimeVariables()] {
                               return FindRuntimes({.path = path, .home = home, .env = env});
                             });
  return host;
}

}  // namespace palmshed::backends::native
