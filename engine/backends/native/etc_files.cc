#include "backends/native/etc_files.h"

#include <dirent.h>
#include <fcntl.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/sys.h"
#include "base/sys_files.h"
#include "palmshed/options.h"

namespace palmshed::backends::native {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxResolvConf = 4096;

// Paths below /etc; * stands for any part of one name, once in each. Everything here is readable
// for every user of the host and carries no secrets. Left out on purpose, though programs look for
// them: pip.conf, npmrc, gitconfig, wgetrc, maven/settings.xml, R/Renviron.site (all may hold
// credentials), ssl/private, machine-id, ssh, the host's own passwd, group, hosts and hostname.
constexpr std::string_view kPublic[] = {
    // The dynamic linkers, glibc's and musl's.
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld-musl-*.path",
    // Debian and Fedora: awk, java, cc, editor in /usr/bin are links through here.
    "alternatives",
    // CA certificates of Debian, SUSE, Arch, Fedora, and the configuration of the TLS libraries.
    "ssl/certs", "ssl/cert.pem", "ssl/ca-bundle.pem", "ssl/openssl.cnf",
    "ca-certificates/extracted", "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf",
    "pki/ca-trust/extracted", "pki/java", "crypto-policies",
    // Local time.
    "timezone",
    // Names of services and protocols: getservbyname(3), socket.getservbyname in Python.
    "services", "protocols", "mime.types",
    // Which distribution this is: pip, npm, lsb_release choose binaries by it.
    "lsb-release", "debian_version", "alpine-release", "redhat-release", "system-release",
    // Configuration that a package keeps here and links to from its directory in /usr.
    "java", "java-*-openjdk", "maven/m2.conf", "maven/logging", "python3", "python3.*", "perl/Net",
    "perl/XML", "php/*/mods-available", "php/*/cli/conf.d", "R/Makeconf", "R/Renviron", "R/ldpaths",
    "R/repositories", "R/javaconf", "dotnet", "fonts", "ImageMagick-*", "xml", "terminfo"};

std::string Passwd(const std::string& id) {
  return "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
         "sandbox:x:" +
         id + ":" + id +
         ":sandbox:/workspace:/bin/sh\n"
         "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
}

std::string Group(const std::string& id) {
  return "root:x:0:\ntty:x:5:\nsandbox:x:" + id + ":\nnogroup:x:65534:\n";
}

constexpr std::string_view kHosts =
    "127.0.0.1 localhost\n"
    "::1 localhost ip6-localhost ip6-loopback\n"
    "127.0.1.1 sandbox\n";

// Without a network a look-up must fail at once, not after the resolver's timeouts.
std::string NameServiceSwitch(Network network) {
  return std::string("passwd: files\ngroup: files\nshadow: files\nhosts: files") +
         (network == Network::kAllow ? " dns" : "") +
         "\nnetworks: files\nprotocols: files\nservices: files\n";
}

// musl asks 127.0.0.1 when no server is named, and waits for an answer.
constexpr std::string_view kNoResolver =
    "# No name server: no network.\noptions timeout:1 attempts:1\n";

std::string ResolvConf(Network network, const std::string& host_root) {
  if (network != Network::kAllow) return std::string(kNoResolver);
  auto content = sys::ReadFile(host_root + "/etc/resolv.conf");
  if (!content) return std::string(kNoResolver);
  if (content->size() > kMaxResolvConf) {
    content->resize(content->rfind('\n', kMaxResolvConf - 1) + 1);
  }
  return *std::move(content);
}

using Kind = EtcFile::Kind;

// What the directories of one host hold, each read once: several patterns look at the same one, and
// this is on the way of a cold start.
class Listings {
 public:
  explicit Listings(std::string host_etc) : host_etc_(std::move(host_etc)) {}

  /// `directory` is a path below /etc, ending in / or empty.
  const std::map<std::string, unsigned char>& Of(const std::string& directory) {
    const auto [at, added] = types_.try_emplace(directory);
    if (added) at->second = Read(host_etc_ + directory);
    return at->second;
  }

  /// False for most of what is not there, without asking the kernel.
  bool MayHold(const std::string& name) { return Of("").contains(name); }

  /// What `path`, below /etc, leads to; nothing for what is neither a file nor a directory.
  std::optional<Kind> KindOf(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const std::string directory = slash == path.npos ? "" : path.substr(0, slash + 1);
    if (const auto known = types_.find(directory); known != types_.end()) {
      const auto entry = known->second.find(path.substr(directory.size()));
      if (entry == known->second.end()) return std::nullopt;
      if (entry->second == DT_REG) return Kind::kShown;
      if (entry->second == DT_DIR) return Kind::kShownDirectory;
    }
    std::error_code error;
    const fs::file_status status = fs::status(host_etc_ + path, error);
    if (fs::is_directory(status)) return Kind::kShownDirectory;
    if (fs::is_regular_file(status)) return Kind::kShown;
    return std::nullopt;
  }

 private:
  /// What cannot be read is not shown either.
  static std::map<std::string, unsigned char> Read(const std::string& path) {
    std::map<std::string, unsigned char> types;
    auto fd = sys::Open(path, O_RDONLY | O_DIRECTORY);
    if (!fd) return types;
    auto directory = sys::Directory::Read(*std::move(fd));
    if (!directory) return types;
    for (auto entry = directory->Next(); entry && *entry; entry = directory->Next()) {
      types.emplace(std::move((*entry)->name), (*entry)->type);
    }
    return types;
  }

  const std::string host_etc_;
  std::map<std::string, std::map<std::string, unsigned char>> types_;
};

// One * in a pattern of one name.
bool Matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  const std::string_view before = pattern.substr(0, star);
  const std::string_view after = pattern.substr(star + 1);
  return name.size() >= before.size() + after.size() && name.starts_with(before) &&
         name.ends_with(after) && name.front() != '.';
}

// What matches the rest of a pattern below `directory` (a path below /etc, ending in / or empty).
void Expand(Listings& listings, const std::string& directory, std::string_view pattern,
            std::vector<std::string>& matches) {
  const std::size_t slash = pattern.find('/');
  const std::string name(pattern.substr(0, slash));
  std::vector<std::string> names;
  if (name.find('*') == name.npos) {
    if (!directory.empty() || listings.MayHold(name)) names.push_back(name);
  } else {
    for (const auto& [found, type] : listings.Of(directory)) {
      if (Matches(name, found)) names.push_back(found);
    }
  }
  for (const std::string& found : names) {
    if (slash == pattern.npos) {
      matches.push_back(directory + found);
    } else {
      Expand(listings, directory + found + "/", pattern.substr(slash + 1), matches);
    }
  }
}

// A link of the host's is kept where it leads to /usr (localtime, os-release): programs read the
// name of the time zone from the link.
std::string LinkTarget(const std::string& path) {
  std::error_code error;
  const std::string target = fs::read_symlink(path, error).string();
  const bool kept = !error && (target.starts_with("/usr/") || target.starts_with("../usr/"));
  return kept && target.find("/../") == target.npos ? target : std::string();
}

}  // namespace

std::vector<EtcFile> MadeEtcFiles(std::uint32_t uid, Network network,
                                  const std::string& host_root) {
  using enum EtcFile::Kind;
  const std::string id = std::to_string(uid);
  return {
      {kMade, "/etc/passwd", Passwd(id)},
      {kMade, "/etc/group", Group(id)},
      {kMade, "/etc/hostname", "sandbox\n"},
      {kMade, "/etc/hosts", std::string(kHosts)},
      {kMade, "/etc/nsswitch.conf", NameServiceSwitch(network)},
      {kMade, "/etc/resolv.conf", ResolvConf(network, host_root)},
      {kLink, "/etc/mtab", "../proc/self/mounts"},
  };
}

std::vector<EtcFile> ShownEtcFiles(const std::string& host_root) {
  using enum EtcFile::Kind;
  const std::string host_etc = host_root + "/etc/";
  std::vector<EtcFile> files;
  for (const std::string name : {"localtime", "os-release"}) {
    if (const std::string target = LinkTarget(host_etc + name); !target.empty()) {
      files.push_back({kLink, "/etc/" + name, target});
    } else if (std::error_code error; fs::is_regular_file(host_etc + name, error)) {
      files.push_back({kShown, "/etc/" + name});
    }
  }
  std::vector<std::string> matches;
  Listings listings(host_etc);
  for (const std::string_view pattern : kPublic) Expand(listings, "", pattern, matches);
  for (const std::string& match : matches) {
    if (const auto kind = listings.KindOf(match)) files.push_back({*kind, "/etc/" + match});
  }
  return files;
}

}  // namespace palmshed::backends::native
