#include "kernel/cgroup2.h"

#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "kernel/cgroup.h"
#include "kernel/cgroup2_leaf.h"
#include "kernel/cgroup_files.h"
#include "kernel/cgroup_place.h"
#include "kernel/cgroup_probe.h"
#include "kernel/cgroup_room.h"
#include "palmshed/error.h"

namespace palmshed::kernel {
namespace {

constexpr char kOwnGroup[] = "engine";  ///< Where this process moves to make room.
constexpr char kSubtreeControl[] = "/cgroup.subtree_control";
constexpr char kDelegate[] =
    "systemd-run --user --scope -p Delegate=yes -- palmshed ... (or start the program that uses "
    "palmshed like that)";

/// Hands a controller down to the groups in `directory`.
Result<void> HandDown(const std::string& directory, std::string_view controller) {
  return WriteGroupFile(directory + kSubtreeControl, "+" + std::string(controller));
}

std::vector<std::string_view> NamesOf(const CgroupControllers& controllers) {
  std::vector<std::string_view> names;
  if (controllers.memory) names.emplace_back("memory");
  if (controllers.pids) names.emplace_back("pids");
  if (controllers.cpu_quota) names.emplace_back("cpu");
  return names;
}

class CgroupGroup2 final : public CgroupGroup {
 public:
  CgroupGroup2(CgroupHost host, std::string directory, const CgroupControllers& controllers)
      : host_(std::move(host)), directory_(std::move(directory)), controllers_(controllers) {}
  ~CgroupGroup2() override { (void)host_.remove(directory_); }
  CgroupGroup2(const CgroupGroup2&) = delete;
  CgroupGroup2& operator=(const CgroupGroup2&) = delete;

  Result<void> SetUp() const {
    for (const std::string_view controller : NamesOf(controllers_)) {
      PALMSHED_TRY_VOID(HandDown(directory_, controller));
    }
    return {};
  }
  void SetWeight(CpuWeight weight) override {
    if (!controllers_.cpu_quota) return;
    const char* const text = weight == CpuWeight::kTenth ? "10" : "100";
    (void)WriteGroupFile(directory_ + "/cpu.weight", text);
  }
  Result<std::unique_ptr<CgroupLeaf>> MakeLeaf() override {
    std::string leaf = directory_ + "/" + std::to_string(++leaves_);
    auto made = host_.make(leaf);
    if (!made && made.error().sys_errno == ENOENT) {
      // Somebody has removed the group while nothing was in it.
      PALMSHED_TRY_VOID(host_.make(directory_));
      PALMSHED_TRY_VOID(SetUp());
      made = host_.make(leaf);
    }
    if (!made) return std::unexpected(std::move(made.error()));
    return MakeLeaf2(std::move(leaf), controllers_);
  }

 private:
  const CgroupHost host_;
  const std::string directory_;
  const CgroupControllers controllers_;
  std::atomic<std::uint64_t> leaves_ = 0;
};

class CgroupTree2 final : public CgroupTree {
 public:
  CgroupTree2(CgroupHost host, std::string top, const CgroupControllers& controllers)
      : host_(std::move(host)), top_(std::move(top)), controllers_(controllers) {}

  CgroupControllers controllers() const override { return controllers_; }
  std::string name() const override { return "cgroup v2"; }
  std::vector<std::string> DirectoriesOf(const std::string& name) const override {
    return {top_ + "/" + name};
  }
  Result<std::unique_ptr<CgroupGroup>> MakeGroup(const std::string& name) override {
    std::string directory = top_ + "/" + name;
    auto made = host_.make(directory);
    if (!made && made.error().sys_errno == EEXIST) {
      return std::unexpected(SysError(ErrorCode::kConflict, "mkdir", EEXIST, directory));
    }
    if (!made) return std::unexpected(std::move(made.error()));
    auto group = std::make_unique<CgroupGroup2>(host_, std::move(directory), controllers_);
    PALMSHED_TRY_VOID(group->SetUp());
    return group;
  }

 private:
  const CgroupHost host_;
  const std::string top_;
  const CgroupControllers controllers_;
};

/// A place where groups can be made, and what they are given there.
struct Candidate {
  std::string directory;
  CgroupControllers controllers{};

  int worth() const {
    return (controllers.memory ? 4 : 0) + (controllers.pids ? 2 : 0) +
           (controllers.cpu_quota ? 1 : 0);
  }
  bool enough() const { return controllers.memory && controllers.pids; }
};

class Search {
 public:
  Search(const CgroupHost& host, const CgroupPlace& place, NoCgroups& missing)
      : host_(host), place_(place), missing_(missing) {}

  std::optional<Candidate> Run() {
    std::optional<Candidate> best;
    for (std::string at = place_.group;; at = ParentOf(at)) {
      auto candidate = Try(at);
      if (candidate && (!best || candidate->worth() > best->worth())) best = std::move(candidate);
      // Upwards only from below the mount: above it are other things.
      if ((best && best->enough()) || at.size() <= place_.mount.size()) return best;
    }
  }

 private:
  std::optional<Candidate> Try(const std::string& directory) {
    // "threaded", "domain invalid": groups there cannot have memory. The root has no such file.
    auto type = sys::ReadFile(directory + "/cgroup.type");
    if (type && *type != "domain\n") return std::nullopt;
    // Whoever moves a process needs this of the nearest group above both ends.
    auto procs = sys::Open(directory + "/cgroup.procs", O_WRONLY);
    if (!procs) return Refused(directory, procs.error());
    HandDownOrMiss(directory, /*has_parent=*/type.has_value());
    auto found = Probe(directory);
    if (!found) return Refused(directory, found.error());
    return Candidate{.directory = directory, .controllers = *found};
  }

  /// Has the controllers handed down by `directory`, as far as that is possible. Only the root may
  /// have processes beside: any other group can then hand down cpu and pids, but no memory, and the
  /// groups below it are of no use (cgroups(7), "domain invalid").
  void HandDownOrMiss(const std::string& directory, bool has_parent) {
    const auto wanted = NotHandedDown(directory);
    if (wanted.empty()) return;
    if (has_parent && HasProcesses(directory) && !MakeRoom(directory)) {
      return Miss(directory + " has processes of its own, so that it cannot hand down controllers");
    }
    for (const char* controller : wanted) {
      auto done = HandDown(directory, controller);
      if (done) continue;
      Miss(directory + " cannot hand down " + controller + ": " + done.error().message);
      if (done.error().sys_errno == EBUSY) return;
    }
  }

  /// What `directory` has and could hand down.
  std::vector<const char*> NotHandedDown(const std::string& directory) {
    const auto available = sys::ReadFile(directory + "/cgroup.controllers");
    const auto enabled = sys::ReadFile(directory + kSubtreeControl);
    std::vector<const char*> wanted;
    for (const char* controller : {"memory", "pids", "cpu"}) {
      if (!available || !HasWord(*available, controller)) {
        Miss("the controller " + std::string(controller) + " is not handed down to " + directory);
      } else if (!enabled || !HasWord(*enabled, controller)) {
        wanted.push_back(controller);
      }
    }
    return wanted;
  }

  static bool HasProcesses(const std::string& directory) {
    const auto processes = sys::ReadFile(directory + "/cgroup.procs");
    return !processes || !processes->empty();
  }

  /// Moves this process, and those that it has started, from its own group to one below, if there
  /// are no others and it may take the group as its own.
  bool MakeRoom(const std::string& directory) {
    const std::string below = directory + "/" + kOwnGroup;
    if (directory != place_.group || directory.ends_with(std::string("/") + kOwnGroup)) {
      return false;
    }
    if (!Delegated()) return false;
    auto made = host_.make(below);
    if (!made && made.error().sys_errno != EEXIST) return false;
    if (MoveDescendants(directory, below, host_.self)) return true;
    if (made) (void)host_.remove(below);
    return false;
  }

  /// Whoever manages groups here has given this one away. An ordinary user who may write to it
  /// could not otherwise; root may write to everything, so it has to be said (systemd marks it), or
  /// be a container's own group.
  bool Delegated() const {
    if (!host_.root || place_.group == place_.mount) return true;
    for (const char* name : {"trusted.delegate", "user.delegate"}) {
      const auto value = sys::GetXattr(place_.group, name);
      if (value && *value == "1") return true;
    }
    return false;
  }

  /// What a group made in `directory` has, seen in one that is made for it and removed again.
  Result<CgroupControllers> Probe(const std::string& directory) const {
    CgroupControllers found;
    PALMSHED_TRY_VOID(LookAtNewGroup(host_, directory, [&](const std::string& group) {
      const auto has = [&](const char* file) { return GroupFileExists(group + "/" + file); };
      found = {.memory = has("memory.max") && has("memory.events"),
               .pids = has("pids.max") && has("pids.current"),
               .cpu_quota = has("cpu.max"),
               .cpu_time = has("cpu.stat")};
    }));
    return found;
  }

  std::nullopt_t Refused(const std::string& directory, const Error& error) {
    Miss("no group can be made in " + directory + ": " + error.message);
    return std::nullopt;
  }

  /// The first trouble is the one that is told: it is nearest to us.
  void Miss(std::string reason) {
    if (missing_.reason.empty()) missing_ = {.reason = std::move(reason), .remedy = Remedy()};
  }

  std::string Remedy() const {
    if (!host_.root) return kDelegate;
    if (place_.read_only) {
      return "mount -o remount,rw " + place_.mount +
             " (under Docker: --privileged, or --cgroupns=private with "
             "-v /sys/fs/cgroup:/sys/fs/cgroup:rw)";
    }
    return "systemd-run --scope -p Delegate=yes -- palmshed ... (in a container: start it as the "
           "only process, or with --cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup:rw)";
  }

  const CgroupHost& host_;
  const CgroupPlace& place_;
  NoCgroups& missing_;
};

}  // namespace

std::unique_ptr<CgroupTree> FindCgroup2(const CgroupHost& host, NoCgroups& missing) {
  const auto place = FindPlace2(host);
  if (!place) {
    missing = {.reason = "cgroup v2 is not mounted, or shows nothing of this process's group",
               .remedy = "mount -t cgroup2 cgroup2 /sys/fs/cgroup"};
    return nullptr;
  }
  auto found = Search(host, *place, missing).Run();
  if (!found || !found->controllers.any()) return nullptr;
  return std::make_unique<CgroupTree2>(host, std::move(found->directory), found->controllers);
}

}  // namespace palmshed::kernel
