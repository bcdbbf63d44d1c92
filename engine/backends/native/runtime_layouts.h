// The table of layouts: how the usual installers of interpreters lay out their directories, and
// which parts of each a sandbox is shown. What is not named here stays out of sight: caches,
// package archives, configuration, credentials (.condarc, credentials.toml, settings.xml, npmrc).
#pragma once

#include <array>
#include <string_view>

namespace palmshed::backends::native {

/// PATH inside ends with these; /usr is always there.
inline constexpr std::array<std::string_view, 6> kFixedPath = {
    "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"};

/// World-readable by design; every program there needs many siblings.
inline constexpr std::string_view kNixStore = "/nix/store";

/// Never part of a shown path, in whose home ever.
inline constexpr std::array<std::string_view, 11> kPrivateNames = {
    ".local", ".config", ".cache",  ".ssh",     ".gnupg",         ".aws",
    ".azure", ".kube",   ".docker", ".mozilla", ".password-store"};

/// <root>/shims holds scripts that choose among <root>/versions/<version>/bin.
struct ShimLayout {
  std::string_view name;              ///< The root is called so, or holds libexec/<name>.
  std::string_view version_variable;  ///< Wins over the file <root>/version.
};
inline constexpr std::array<ShimLayout, 4> kShimLayouts = {{
    {"pyenv", "PYENV_VERSION"},
    {"rbenv", "RBENV_VERSION"},
    {"nodenv", "NODENV_VERSION"},
    {"goenv", "GOENV_VERSION"},
}};

/// Of a rustup toolchain: etc holds nothing but shell completions.
inline constexpr std::string_view kToolchainParts = "bin lib libexec share";

inline constexpr std::string_view kVenvMarker = "pyvenv.cfg";

/// <prefix>/bin is on PATH and <prefix>/<marker> exists, inside the prefix once
/// links are resolved. The first that fits.
struct PrefixLayout {
  std::string_view marker;
  std::string_view parts;     ///< Names below the prefix; * at the end stands for any rest.
  std::string_view variable;  ///< Set to the prefix; empty: none.
};
inline constexpr std::array<PrefixLayout, 9> kPrefixLayouts = {{
    // Python's venv and virtualenv.
    {kVenvMarker, "pyvenv.cfg bin lib lib64 include share", ""},
    // conda, mamba, micromamba: ssl holds the CA certificates their OpenSSL looks for.
    {"conda-meta", "bin lib libexec include share ssl", ""},
    // Homebrew: bin and opt are links into the Cellar; etc beyond the CA certificates is the
    // user's.
    {"Cellar",
     "bin sbin lib libexec include share opt Cellar etc/ca-certificates etc/openssl@3/cert.pem",
     ""},
    // Go, unpacked anywhere: it finds its root from its own path and compiles what is in src.
    {"pkg/tool", "VERSION go.env bin lib pkg src", ""},
    // A JDK (/opt, sdkman, asdf): conf is part of the program, without it there is no crypto.
    {"lib/jvm.cfg", "release bin lib conf include jmods legal", "JAVA_HOME"},
    {"jre/lib", "release bin lib jre include", "JAVA_HOME"},  // JDK 8.
    // Maven: conf/settings.xml may hold passwords.
    {"boot", "bin boot lib conf/logging", ""},
    // Node.js (nvm, n, nodenv, asdf, /opt).
    {"lib/node_modules", "bin lib include share", ""},
    // Anything else that looks like an installation: versions of pyenv and rbenv, sdkman, /opt/<x>.
    {"lib/.", "bin lib* libexec include share", ""},
}};

}  // namespace palmshed::backends::native
