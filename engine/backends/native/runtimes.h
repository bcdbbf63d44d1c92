// Interpreters and compilers outside /usr: which directories a sandbox gets to see so that what is
// on the caller's PATH runs inside too, and which variables those programs need.
//
// A table of layouts names the exact subdirectories that are shown, read-only, at the path they
// have on the host. Nothing else of the host appears: never a home directory or what contains one,
// never ~/.local or ~/.config, of ~/.cargo only bin. What a PATH entry really names decides, with
// every symbolic link resolved; a link inside a shown prefix is shown as a link, never followed.
#pragma once

#include <future>
#include <string>
#include <string_view>
#include <vector>

#include "palmshed/options.h"

namespace palmshed::backends::native {

/// Where to look. Everything comes from the caller; nothing is read from the process environment.
struct RuntimeSearch {
  std::string_view path{};  ///< A PATH; entries that are not absolute are skipped.
  std::string home{};       ///< The user's home directory.
  Env env{};                ///< Their variables, for PYENV_VERSION, RUSTUP_HOME and the like.
  /// Directories that are the sandbox's own, or closed, whatever lies below them on the host.
  std::vector<std::string> hidden = {"/dev", "/etc", "/proc", "/run",
                                     "/sys", "/tmp", "/var",  "/workspace"};
};

/// What was found. All paths are absolute, free of links, and the same inside as on the host.
struct Runtimes {
  struct Bind {
    std::string path;
    bool directory = true;
    bool operator==(const Bind&) const = default;
  };
  struct Link {
    std::string path;
    std::string target;
    bool operator==(const Link&) const = default;
  };
  struct File {
    std::string path;
    std::string content;
    bool operator==(const File&) const = default;
  };
  std::vector<std::string> search_path{};  ///< PATH inside: what was found, then the fixed ones.
  Env env{};                               ///< Variables to set inside.
  std::vector<Bind> binds{};               ///< Shown read-only; none contains another.
  std::vector<Link> links{};
  std::vector<File> files{};  ///< Made, in place of a file of the host that says too much.
};

/// What is known already, where it may as well be looked for later.
std::shared_future<Runtimes> KnownRuntimes(Runtimes found = {});

/// Directories that are unreadable, missing or unknown are silently left out.
Runtimes FindRuntimes(const RuntimeSearch& search);

/// True where `path` is `directory` or lies below it; both absolute and normalised.
bool IsWithin(std::string_view path, std::string_view directory);

}  // namespace palmshed::backends::native
