#include "backends/native/view.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include "backends/native/etc_files.h"
#include "backends/native/runtimes.h"
#include "base/faults.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "child/wire.h"
#include "kernel/landlock.h"
#include "palmshed/options.h"

namespace palmshed::backends::native {
namespace {

namespace fs = std::filesystem;
namespace landlock = kernel::landlock;
using child::ViewOp;

constexpr std::uint64_t kReadOnly = landlock::kReadFile | landlock::kReadDir;
constexpr std::uint64_t kProgram = kReadOnly | landlock::kExecute;
// Programs write to /proc/self/oom_score_adj and to /dev/null, with O_TRUNC where a shell opens it.
constexpr std::uint64_t kReadWrite = kReadOnly | landlock::kWriteFile | landlock::kTruncate;
constexpr std::uint64_t kDevices = kReadWrite | landlock::kIoctlDev;
constexpr std::uint64_t kEverything = ~std::uint64_t{0};  // As far as the kernel's version goes.

constexpr std::size_t kMaxCopied = 4096;

// Directories of the root that are links into /usr on most hosts.
constexpr std::array<std::string_view, 6> kSystemNames = {"bin",   "sbin",  "lib",
                                                          "lib32", "lib64", "libx32"};

constexpr std::array<std::string_view, 6> kDeviceNames = {"null",   "zero",    "full",
                                                          "random", "urandom", "tty"};

// What the C library looks names up with.
constexpr std::array<std::string_view, 4> kNameService = {"/etc/resolv.conf", "/etc/hosts",
                                                          "/etc/nsswitch.conf", "/etc/gai.conf"};

// Top-level directories that a host view does not take from the host.
constexpr std::array<std::string_view, 6> kNotTheHosts = {"proc",      "dev", "tmp",
                                                          "workspace", "run", "sys"};

std::string ParentOf(const std::string& path) {
  return path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
}

class ViewBuilder {
 public:
  explicit ViewBuilder(const ViewRequest& request, ViewProgress progress = {})
      : request_(request), progress_(std::move(progress)) {
    view_.handled = kernel::RightsOfLandlock(request.landlock_abi);
    // A network namespace does the job better: inside it, loopback stays open.
    view_.handled.net = 0;
  }

  void Directory(const std::string& path, std::uint32_t mode = 0755) {
    if (path == "/" || !Claim(path)) return;
    Directory(ParentOf(path));
    view_.items.push_back({.op = ViewOp::kDirectory, .mode = mode, .a = path});
  }

  void File(const std::string& path, const std::string& content) {
    if (Prepare(path)) {
      view_.items.push_back({.op = ViewOp::kFile, .mode = 0644, .a = path, .b = content});
    }
  }

  void Link(const std::string& path, const std::string& target) {
    if (Prepare(path)) {
      view_.items.push_back({.op = ViewOp::kSymlink, .mode = 0777, .a = path, .b = target});
    }
  }

  void Bind(const std::string& path, std::uint32_t flags) {
    if (!Prepare(path)) return;
    if (Faulty("writable-runtime")) flags |= child::kViewWritable;
    view_.items.push_back(
        {.op = ViewOp::kBind, .flags = flags, .a = path, .b = request_.host_root + path});
  }

  void Proc() {
    if (request_.proc && Prepare("/proc"))
      view_.items.push_back({.op = ViewOp::kProc, .a = "/proc"});
  }

  void Rule(const std::string& path, std::uint64_t access, bool optional = false) {
    access &= view_.handled.fs;
    if (access != 0) view_.rules.push_back({path, access, optional});
  }

  void HandleTcp() { view_.handled.net = kernel::RightsOfLandlock(request_.landlock_abi).net; }

  // What there is so far will not change.
  void Flush() {
    if (progress_) progress_(std::span(view_.items).subspan(flushed_));
    flushed_ = view_.items.size();
  }

  View Build() && {
    Flush();
    return std::move(view_);
  }

  // What a path of the host's root directory is: the target of a link, or a directory.
  struct RootEntry {
    bool directory = false;
    std::string link{};
  };
  RootEntry Look(std::string_view name) {
    const std::string path = request_.host_root + "/" + std::string(name);
    auto link = sys::ReadlinkAt(AT_FDCWD, path);
    if (link) return {.link = *std::move(link)};
    const int error = link.error().sys_errno;
    if (error != EINVAL && error != ENOENT && !view_.failed) view_.failed = std::move(link.error());
    struct stat status{};
    return {.directory = ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)};
  }

 private:
  // False when something stands there already: the first to name a path has it.
  bool Claim(const std::string& path) { return claimed_.insert(path).second; }

  bool Prepare(const std::string& path) {
    if (!Claim(path)) return false;
    Directory(ParentOf(path));
    return true;
  }

  const ViewRequest& request_;
  const ViewProgress progress_;
  std::unordered_set<std::string> claimed_;
  View view_;
  std::size_t flushed_ = 0;
};

// A link of the root is kept when it stays in what the view shows.
bool LeadsToSystem(const std::string& target) {
  const bool inside =
      target.starts_with("usr/") || target.starts_with("/usr/") || target.find('/') == target.npos;
  return inside && target.find("..") == target.npos;
}

void AddSystem(ViewBuilder& view) {
  view.Bind("/usr", child::kViewRecursive);
  view.Rule("/usr", kProgram);
  for (const std::string_view name : kSystemNames) {
    const std::string path = "/" + std::string(name);
    const auto entry = view.Look(name);
    if (!entry.link.empty() && LeadsToSystem(entry.link)) view.Link(path, entry.link);
    if (!entry.directory) continue;
    view.Bind(path, child::kViewRecursive);
    view.Rule(path, kProgram);
  }
}

// A mount costs every sandbox a little, so what is small is copied instead: as of the launcher's
// start, and only what every user of the host may read.
std::optional<std::string> SmallContent(const std::string& host_path) {
  const auto file = sys::Open(host_path, O_RDONLY | O_NONBLOCK);
  if (!file) return std::nullopt;
  const auto status = sys::Fstat(file->get());
  if (!status || (status->st_mode & S_IROTH) == 0 || !S_ISREG(status->st_mode)) return std::nullopt;
  std::string content(kMaxCopied + 1, '\0');
  const auto size = sys::Read(file->get(), std::as_writable_bytes(std::span(content)));
  if (!size || *size > kMaxCopied) return std::nullopt;
  content.resize(*size);
  return content;
}

void AddEtc(ViewBuilder& view, const ViewRequest& request) {
  view.Directory("/etc");
  std::vector<EtcFile> files = MadeEtcFiles(request.uid, request.network, request.host_root);
  std::ranges::move(ShownEtcFiles(request.host_root), std::back_inserter(files));
  for (const EtcFile& file : files) {
    switch (file.kind) {
      case EtcFile::Kind::kMade:
        view.File(file.path, file.content);
        break;
      case EtcFile::Kind::kLink:
        view.Link(file.path, file.content);
        break;
      case EtcFile::Kind::kShown:
        if (const auto content = SmallContent(request.host_root + file.path)) {
          view.File(file.path, *content);
          break;
        }
        [[fallthrough]];
      case EtcFile::Kind::kShownDirectory:
        view.Bind(file.path, child::kViewRecursive | child::kViewOptional);
        break;
    }
  }
  view.Rule("/etc", kReadOnly);
}

// Init mounts a devpts and a tmpfs of its own on pts and shm.
void AddDev(ViewBuilder& view) {
  view.Directory("/dev");
  for (const std::string_view name : kDeviceNames) {
    view.Bind("/dev/" + std::string(name), child::kViewDevice | child::kViewWritable);
  }
  view.Directory("/dev/pts");
  view.Directory("/dev/shm", 01777);
  view.Link("/dev/ptmx", "pts/ptmx");
  view.Link("/dev/fd", "/proc/self/fd");
  view.Link("/dev/stdin", "/proc/self/fd/0");
  view.Link("/dev/stdout", "/proc/self/fd/1");
  view.Link("/dev/stderr", "/proc/self/fd/2");
}

// Mount points of what each sandbox has for itself.
void AddOwn(ViewBuilder& view) {
  AddDev(view);
  view.Proc();
  view.Directory("/tmp", 01777);
  view.Directory("/workspace");
}

void AddOwnRules(ViewBuilder& view) {
  view.Rule("/", landlock::kReadDir);  // `ls /`; every directory in sight may be listed.
  view.Rule("/dev", kDevices);
  view.Rule("/dev/shm", kEverything);
  view.Rule("/proc", kReadWrite);
  view.Rule("/tmp", kEverything);
  view.Rule("/workspace", kEverything);
}

std::uint64_t RuntimeAccess(const Runtimes::Bind& bind) {
  return bind.directory ? kProgram : kProgram & landlock::kFileRights;
}

void AddRuntimes(ViewBuilder& view, const Runtimes& runtimes) {
  for (const Runtimes::Bind& bind : runtimes.binds) {
    view.Bind(bind.path, child::kViewRecursive | child::kViewOptional);
    view.Rule(bind.path, RuntimeAccess(bind), true);
  }
  for (const Runtimes::Link& link : runtimes.links) view.Link(link.path, link.target);
  for (const Runtimes::File& file : runtimes.files) {
    view.File(file.path, file.content);
    view.Rule(file.path, landlock::kReadFile);
  }
}

std::vector<std::string> RootNames(const std::string& host_root) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator at(host_root + "/", error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

void Append(std::vector<std::byte>& bytes, const void* from, std::size_t size) {
  const auto* first = static_cast<const std::byte*>(from);
  bytes.insert(bytes.end(), first, first + size);
}

// A string with its NUL.
void Append(std::vector<std::byte>& bytes, const std::string& text) {
  Append(bytes, text.c_str(), text.size() + 1);
}

void Pad(std::vector<std::byte>& bytes) { bytes.resize((bytes.size() + 7) / 8 * 8); }

}  // namespace

View BuildPrivateView(const ViewRequest& request, const ViewProgress& progress) {
  ViewBuilder view(request, progress);
  AddSystem(view);
  AddOwn(view);
  view.Link("/var/tmp", "/tmp");
  view.Directory("/run");
  view.Flush();
  AddEtc(view, request);
  view.Flush();
  AddRuntimes(view, request.runtimes.get());
  AddOwnRules(view);
  return std::move(view).Build();
}

View BuildHostView(const ViewRequest& request, const ViewProgress& progress) {
  ViewBuilder view(request, progress);
  for (const std::string& name : RootNames(request.host_root)) {
    if (std::ranges::find(kNotTheHosts, name) != kNotTheHosts.end()) continue;
    const std::string path = "/" + name;
    const auto entry = view.Look(name);
    if (!entry.link.empty()) view.Link(path, entry.link);
    if (!entry.directory) continue;
    view.Bind(path, child::kViewRecursive | child::kViewWritable | child::kViewOptional);
  }
  AddOwn(view);
  view.Directory("/run");
  view.Rule("/", kEverything);
  return std::move(view).Build();
}

View BuildFilteredView(const ViewRequest& request, const std::string& workspace,
                       const std::string& tmp) {
  ViewBuilder view(request);
  if (request.network != Network::kAllow) view.HandleTcp();
  if (request.network == Network::kAllow) {
    for (const std::string_view path : kNameService) {
      view.Rule(std::string(path), landlock::kReadFile, true);
    }
  }
  view.Rule(workspace, kEverything);
  view.Rule(tmp, kEverything);
  view.Rule("/usr", kProgram);
  for (const std::string_view name : kSystemNames) {
    if (view.Look(name).directory) view.Rule("/" + std::string(name), kProgram);
  }
  for (const EtcFile& file : ShownEtcFiles(request.host_root)) {
    if (file.kind == EtcFile::Kind::kShown) view.Rule(file.path, landlock::kReadFile, true);
    if (file.kind == EtcFile::Kind::kShownDirectory) view.Rule(file.path, kReadOnly, true);
  }
  for (const std::string_view name : kDeviceNames) {
    view.Rule("/dev/" + std::string(name), kDevices & landlock::kFileRights, true);
  }
  for (const Runtimes::Bind& bind : request.runtimes.get().binds) {
    view.Rule(bind.path, RuntimeAccess(bind), true);
  }
  return std::move(view).Build();
}

std::vector<std::byte> EncodeView(std::span<const ViewItem> items) {
  std::vector<std::byte> bytes;
  for (const ViewItem& item : items) {
    const child::ViewEntry entry{.op = item.op,
                                 .flags = item.flags,
                                 .mode = item.mode,
                                 .bytes_a = static_cast<std::uint32_t>(item.a.size()),
                                 .bytes_b = static_cast<std::uint32_t>(item.b.size()),
                                 .tree = item.tree};
    Append(bytes, &entry, sizeof entry);
    Append(bytes, item.a);
    Append(bytes, item.b);
    Pad(bytes);
  }
  return bytes;
}

std::vector<std::byte> EncodeRules(std::span<const LandlockRulePlan> rules) {
  std::vector<std::byte> bytes;
  for (const LandlockRulePlan& plan : rules) {
    const child::LandlockRule rule{.access = plan.access,
                                   .bytes = static_cast<std::uint32_t>(plan.path.size()),
                                   .optional = plan.optional ? 1U : 0U};
    Append(bytes, &rule, sizeof rule);
    Append(bytes, plan.path);
    Pad(bytes);
  }
  return bytes;
}

}  // namespace palmshed::backends::native
