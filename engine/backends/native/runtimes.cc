#include "backends/native/runtimes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <future>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/native/runtime_layouts.h"
#include "base/sys.h"
#include "base/sys_files.h"

namespace palmshed::backends::native {
namespace {

constexpr std::size_t kMaxEntries = 256;  // Of a PATH; later ones are not looked at.
constexpr off_t kMaxFile = 64 << 10;      // Larger files are not what they are named for.

// Each question has a quiet answer: what cannot be looked at is not there.
bool IsDirectory(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::string ReadSmallFile(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  if (status.st_size > kMaxFile) return {};
  auto content = sys::ReadFile(path);
  return content ? *std::move(content) : std::string();
}

std::string Join(const std::string& directory, std::string_view name) {
  std::string path = directory;
  return path.append("/").append(name);
}

// A name that can only mean an entry of the directory it is looked up in.
bool IsPlainName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos;
}

std::string Parent(const std::string& path) {
  return path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
}
std::string Name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// realpath(3) for many paths that have directories in common: each is looked at once.
class Resolver {
 public:
  std::optional<std::string> operator()(const std::string& path) { return Resolve(path, 0); }

 private:
  using Resolved = std::optional<std::string>;
  static constexpr int kMaxLinks = 40;  // path_resolution(7)

  Resolved Resolve(const std::string& path, int links) {
    if (path == "/") return path;
    if (!path.starts_with('/')) return std::nullopt;
    if (const auto known = known_.find(path); known != known_.end()) return known->second;
    Resolved resolved = Look(path, links);
    known_.emplace(path, resolved);
    return resolved;
  }

  Resolved Look(const std::string& path, int links) {
    const Resolved parent = Resolve(Parent(path), links);
    if (!parent) return std::nullopt;
    const std::string name = Name(path);
    if (name.empty() || name == ".") return IsDirectory(*parent) ? parent : std::nullopt;
    if (name == "..") return Parent(*parent);
    const std::string found = *parent == "/" ? "/" + name : *parent + "/" + name;
    char target[PATH_MAX];
    const ssize_t size = ::readlink(found.c_str(), target, sizeof target);
    if (size < 0) return errno == EINVAL ? Resolved(found) : std::nullopt;  // EINVAL: no link.
    if (links == kMaxLinks || size == sizeof target) return std::nullopt;
    const std::string_view text(target, static_cast<std::size_t>(size));
    return Resolve(text.starts_with('/') ? std::string(text) : *parent + "/" + std::string(text),
                   links + 1);
  }

  std::unordered_map<std::string, Resolved> known_;
};

std::vector<std::string> Split(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// The value of `key = "value"` in a file of such lines (TOML, pyvenv.cfg); empty when absent.
std::string Setting(std::string_view text, std::string_view key) {
  for (const std::string& line : Split(text, "\r\n")) {
    const std::size_t equals = line.find('=');
    if (equals == line.npos) continue;
    const auto strip = [](std::string_view part) {
      constexpr std::string_view kAround = " \t\"";
      const std::size_t first = std::min(part.find_first_not_of(kAround), part.size());
      part.remove_prefix(first);
      return part.substr(0, part.find_last_not_of(kAround) + 1);
    };
    const std::string_view whole = line;
    if (strip(whole.substr(0, equals)) == key) return std::string(strip(whole.substr(equals + 1)));
  }
  return {};
}

// Orders "3.9.18" before "3.11.7": runs of digits compare as numbers.
bool OlderVersion(const std::string& a, const std::string& b) {
  const auto number = [](const std::string& part) {
    return part.find_first_not_of("0123456789") == part.npos && part.size() < 9 ? std::stol(part)
                                                                                : -1L;
  };
  return std::ranges::lexicographical_compare(Split(a, ".-"), Split(b, ".-"), {}, number, number);
}

std::vector<std::string> ListNames(const std::string& directory) {
  std::vector<std::string> names;
  auto fd = sys::Open(directory, O_RDONLY | O_DIRECTORY);
  if (!fd) return names;
  auto listing = sys::Directory::Read(*std::move(fd));
  if (!listing) return names;
  for (auto entry = listing->Next(); entry && *entry; entry = listing->Next()) {
    names.push_back(std::move((*entry)->name));
  }
  std::ranges::sort(names);
  return names;
}

// Always in the path, and shown.
bool IsFixed(const std::string& directory) {
  return std::ranges::find(kFixedPath, directory) != kFixedPath.end();
}

class Finder {
 public:
  explicit Finder(const RuntimeSearch& search) : search_(search) {
    homes_ = {"/root", search.home};
    if (auto resolved = resolve_(search.home)) homes_.push_back(*resolved);
  }

  Runtimes Find() && {
    for (const std::string& entry : Split(search_.path, ":") | std::views::take(kMaxEntries)) {
      if (!entry.starts_with('/') || IsFixed(entry)) continue;
      const auto directory = resolve_(entry);
      if (!directory || !IsDirectory(*directory) || !entered_.insert(*directory).second) continue;
      Enter(*directory);
    }
    for (const std::string_view fixed : kFixedPath) AddToPath(std::string(fixed));
    return std::move(found_);
  }

 private:
  // A directory of the PATH, free of links.
  void Enter(const std::string& directory) {
    if (IsFixed(directory)) return;
    if (EnterShims(directory) || EnterAsdf(directory)) return;
    EnterRustup(directory);
    if (Show(directory)) AddToPath(directory);
  }

  // pyenv and its relatives: scripts that ask a manager which version is meant. The version's own
  // directory takes their place, because the manager is not shown.
  bool EnterShims(const std::string& directory) {
    const std::string root = Parent(directory);
    if (Name(directory) != "shims" || !IsDirectory(root + "/versions")) return false;
    for (const ShimLayout& layout : kShimLayouts) {
      const std::string name(layout.name);
      if (Name(root) != "." + name && Name(root) != name &&
          !Exists(Join(root + "/libexec", name))) {
        continue;
      }
      std::string chosen = Variable(layout.version_variable);
      if (chosen.empty()) chosen = ReadSmallFile(root + "/version");
      for (const std::string& version : Split(chosen, ":\n\r\t ")) {
        EnterInstalled(FindVersion(root + "/versions", version));
      }
      break;
    }
    return true;
  }

  // "3.11" means the newest 3.11.x that is installed.
  static std::string FindVersion(const std::string& versions, const std::string& wanted) {
    if (!IsPlainName(wanted)) return {};
    if (IsDirectory(Join(versions, wanted))) return Join(versions, wanted);
    std::vector<std::string> names = ListNames(versions);
    std::erase_if(names, [&](const std::string& name) { return !name.starts_with(wanted + "."); });
    if (names.empty()) return {};
    return Join(versions, *std::ranges::max_element(names, OlderVersion));
  }

  bool EnterAsdf(const std::string& directory) {
    const std::string root = Parent(directory);
    if (Name(directory) != "shims" || !IsDirectory(root + "/installs")) return false;
    for (const std::string& line : Split(ReadSmallFile(search_.home + "/.tool-versions"), "\r\n")) {
      const std::vector<std::string> words = Split(line.substr(0, line.find('#')), " \t");
      if (words.size() < 2 || !IsPlainName(words[0]) || !IsPlainName(words[1])) continue;
      const std::string version = Join(Join(root + "/installs", words[0]), words[1]);
      EnterInstalled(version);
      EnterInstalled(version + "/go");  // asdf-golang unpacks the archive, which holds go/.
    }
    return true;
  }

  void EnterInstalled(const std::string& prefix) {
    if (prefix.empty()) return;
    const auto directory = resolve_(prefix + "/bin");
    if (directory && Show(*directory)) AddToPath(*directory);
  }

  // rustup's programs start those of a toolchain. The toolchain's own directory goes before them,
  // so that a command needs no proxy, and the proxies find the same toolchain and no other.
  void EnterRustup(const std::string& bin) {
    if (!Exists(bin + "/rustup")) return;
    std::string home = Variable("RUSTUP_HOME");
    if (home.empty()) home = Parent(Parent(bin)) + "/.rustup";
    const auto resolved = resolve_(home);
    if (!resolved) return;
    const std::string toolchain = FindToolchain(*resolved);
    if (toolchain.empty() || !ShowParts(toolchain, kToolchainParts)) return;
    AddToPath(toolchain + "/bin");
    SetVariable("RUSTUP_HOME", *resolved);
    SetVariable("RUSTUP_TOOLCHAIN", Name(toolchain));
    if (!IsWithin(*resolved, "/usr")) {
      // The host's file lists the user's project directories.
      found_.files.push_back(
          {*resolved + "/settings.toml",
           "version = \"12\"\ndefault_toolchain = \"" + Name(toolchain) + "\"\n"});
    }
  }

  // A toolchain that is a link to somewhere else (`rustup toolchain link`) is not shown.
  std::string FindToolchain(const std::string& rustup) {
    std::string wanted = Variable("RUSTUP_TOOLCHAIN");
    if (wanted.empty())
      wanted = Setting(ReadSmallFile(rustup + "/settings.toml"), "default_toolchain");
    if (!IsPlainName(wanted)) return {};
    const std::string toolchains = rustup + "/toolchains";
    for (const std::string& name : ListNames(toolchains)) {
      if (name != wanted && !name.starts_with(wanted + "-")) continue;
      const auto resolved = resolve_(Join(toolchains, name));
      if (resolved && Parent(*resolved) == toolchains && IsDirectory(*resolved + "/bin")) {
        return *resolved;
      }
    }
    return {};
  }

  // Makes a bin directory and what belongs to it visible; false when it may not be.
  bool Show(const std::string& directory) {
    if (IsWithin(directory, "/usr")) return true;
    if (IsWithin(directory, kNixStore)) return AddBind(std::string(kNixStore), true);
    const std::string prefix = Parent(directory);
    if (Name(prefix) == ".cargo" || resolve_(Variable("CARGO_HOME")) == prefix) {
      return Name(directory) == "bin" && AddBind(directory, true);
    }
    if (Name(directory) != "bin" && Name(directory) != "sbin") return false;
    for (const PrefixLayout& layout : kPrefixLayouts) {
      const auto marker = resolve_(Join(prefix, layout.marker));
      if (!marker || !IsWithin(*marker, prefix)) continue;
      if (!ShowParts(prefix, layout.parts)) return false;
      if (!layout.variable.empty()) SetVariable(layout.variable, prefix);
      if (layout.marker == kVenvMarker) ShowVenvBase(prefix);
      return true;
    }
    return false;
  }

  // A virtual environment's python is a link to the one it was made from.
  void ShowVenvBase(const std::string& prefix) {
    const std::string base = Setting(ReadSmallFile(prefix + "/pyvenv.cfg"), "home");
    if (const auto directory = resolve_(base); directory && Parent(*directory) != prefix) {
      if (!Exists(Parent(*directory) + "/pyvenv.cfg")) Show(*directory);
    }
  }

  bool ShowParts(const std::string& prefix, std::string_view parts) {
    if (IsWithin(prefix, "/usr")) return true;
    if (!MayShow(prefix)) return false;
    bool shown = false;
    for (std::string& part : Split(parts, " ")) {
      if (!part.ends_with('*')) {
        shown |= ShowPart(Join(prefix, part));
        continue;
      }
      part.pop_back();
      for (const std::string& name : ListNames(prefix)) {
        if (name.starts_with(part)) shown |= ShowPart(Join(prefix, name));
      }
    }
    return shown;
  }

  bool ShowPart(const std::string& path) {
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0) return false;
    if (S_ISLNK(status.st_mode)) {
      const auto target = sys::ReadlinkAt(AT_FDCWD, path);
      // lib64 -> lib. Anything farther away is not the layout that the table describes.
      if (target && IsPlainName(*target) && MayShow(path)) found_.links.push_back({path, *target});
      return false;
    }
    if (resolve_(path) != path) return false;
    return (S_ISDIR(status.st_mode) || S_ISREG(status.st_mode)) &&
           AddBind(path, S_ISDIR(status.st_mode));
  }

  bool MayShow(const std::string& path) const {
    const auto below = [&](const std::string& hidden) { return IsWithin(path, hidden); };
    const auto above = [&](const std::string& home) {
      return !home.empty() && IsWithin(home, path);
    };
    if (std::ranges::any_of(search_.hidden, below) || std::ranges::any_of(homes_, above)) {
      return false;
    }
    if (path == "/" || Parent(path) == "/home") return false;
    const std::vector<std::string> names = Split(path, "/");
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (std::ranges::find(kPrivateNames, names[i]) != kPrivateNames.end()) return false;
      if (names[i] == ".cargo" && (i + 1 == names.size() || names[i + 1] != "bin")) return false;
    }
    return true;
  }

  bool AddBind(const std::string& path, bool directory) {
    if (!MayShow(path)) return false;
    for (const Runtimes::Bind& bind : found_.binds) {
      if (IsWithin(path, bind.path)) return true;
    }
    std::erase_if(found_.binds,
                  [&](const Runtimes::Bind& bind) { return IsWithin(bind.path, path); });
    found_.binds.push_back({path, directory});
    return true;
  }

  void AddToPath(const std::string& directory) {
    if (std::ranges::find(found_.search_path, directory) == found_.search_path.end()) {
      found_.search_path.push_back(directory);
    }
  }

  std::string Variable(std::string_view name) const {
    for (const auto& [key, value] : search_.env) {
      if (key == name) return value;
    }
    return {};
  }

  // The first on PATH wins, as it does for commands.
  void SetVariable(std::string_view name, const std::string& value) {
    for (const auto& [key, known] : found_.env) {
      if (key == name) return;
    }
    found_.env.emplace_back(name, value);
  }

  const RuntimeSearch& search_;
  Resolver resolve_;
  std::vector<std::string> homes_;
  std::set<std::string> entered_;
  Runtimes found_;
};

}  // namespace

std::shared_future<Runtimes> KnownRuntimes(Runtimes found) {
  std::promise<Runtimes> known;
  known.set_value(std::move(found));
  return known.get_future();
}

Runtimes FindRuntimes(const RuntimeSearch& search) { return Finder(search).Find(); }

bool IsWithin(std::string_view path, std::string_view directory) {
  if (directory == "/") return path.starts_with('/');
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

}  // namespace palmshed::backends::native
