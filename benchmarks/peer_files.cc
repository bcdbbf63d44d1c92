#include "benchmarks/peer_files.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "benchmarks/die.h"
#include "benchmarks/peers.h"

namespace palmshed::benchmarks {
namespace {

namespace json = boost::json;

json::object MountOf(const char* destination, const char* type, const char* source,
                     json::array options) {
  return {{"destination", destination},
          {"type", type},
          {"source", source},
          {"options", std::move(options)}};
}

json::array Namespaces() {
  json::array namespaces;
  for (const char* type : {"pid", "network", "ipc", "uts", "mount"}) {
    namespaces.push_back(json::object{{"type", type}});
  }
  return namespaces;
}

json::object ContainerConfig() {
  const json::object process{{"terminal", false},
                             {"user", {{"uid", 0}, {"gid", 0}}},
                             {"args", json::array{kProgram}},
                             {"env", json::array{"PATH=/usr/bin:/bin"}},
                             {"cwd", "/"},
                             {"noNewPrivileges", true}};
  const json::array mounts{MountOf("/usr", "bind", "/usr", {"rbind", "ro"}),
                           MountOf("/proc", "proc", "proc", {}),
                           MountOf("/dev", "tmpfs", "tmpfs", {"nosuid", "mode=755"}),
                           MountOf("/tmp", "tmpfs", "tmpfs", {"nosuid", "nodev"})};
  return {{"ociVersion", "1.0.2"},
          {"process", process},
          {"root", {{"path", "rootfs"}, {"readonly", true}}},
          {"hostname", "benchmark"},
          {"mounts", mounts},
          {"linux", {{"namespaces", Namespaces()}}}};
}

json::object RuntimeSettings() {
  const json::object network{{"allowedDomains", json::array()}, {"deniedDomains", json::array()}};
  const json::object files{{"denyRead", json::array()},
                           {"allowWrite", json::array{"/tmp"}},
                           {"denyWrite", json::array()}};
  return {{"network", network}, {"filesystem", files}};
}

void Write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text << '\n';
  if (!file.flush()) DieErrno("cannot write " + path.string());
}

}  // namespace

void WritePeerFiles(const std::string& directory) {
  const std::filesystem::path top(directory);
  const auto root = top / "bundle/rootfs";
  for (const char* name : {"usr", "proc", "dev", "tmp", "sys", "etc", "run", "var", "root"}) {
    std::error_code error;
    std::filesystem::create_directories(root / name, error);
    if (error) Die("cannot make " + (root / name).string());
  }
  for (const char* name : {"bin", "lib", "lib64"}) {
    std::error_code error;
    std::filesystem::create_directory_symlink(std::string("usr/") + name, root / name, error);
    if (error) Die("cannot make " + (root / name).string());
  }
  Write(root / "etc/os-release", "ID=benchmark");  // systemd-nspawn wants one.
  Write(top / "bundle/config.json", json::serialize(ContainerConfig()));
  Write(top / "settings.json", json::serialize(RuntimeSettings()));
}

}  // namespace palmshed::benchmarks
