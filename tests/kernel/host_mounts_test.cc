// Directories and files of the host that a sandbox is shown.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class HostMounts : public KernelTest {
 protected:
  HostMounts() {
    fs::create_directories(data() + "/deep");
    std::ofstream(data() + "/file") << "from the host\n";
    std::ofstream(data() + "/deep/script") << "#!/bin/sh\necho ran\n";
    // Modes that would let anybody write: what keeps a sandbox from it is the mount.
    for (const char* const name : {"", "/file", "/deep", "/deep/script"}) {
      fs::permissions(data() + name, fs::perms::all);
    }
  }
  /// Without links.
  const std::string& top() const { return top_; }
  std::string data() const { return top_ + "/data"; }
  Result<Sandbox> Make(std::vector<Mount> mounts, SandboxOptions options = {}) {
    options.mounts = std::move(mounts);
    // An ordinary user of a host that leaves groups alone accepts them here.
    options.degraded = {"groups"};
    return engine().CreateSandbox(options);
  }
  Error Refusal(std::vector<Mount> mounts, SandboxOptions options = {}) {
    const auto made = Make(std::move(mounts), std::move(options));
    EXPECT_FALSE(made);
    return made ? Error{} : made.error();
  }

 private:
  const TempDir directory_;
  const std::string top_ = fs::canonical(directory_.path());
};

TEST_F(HostMounts, AreReadOnlyUnlessAskedOtherwise) {
  Sandbox sandbox = Must(Make({{.source = data(), .target = "/data"},
                               {.source = data(), .target = "/srv/deep/out", .read_only = false}}));
  EXPECT_THAT(ExecShell(sandbox, "cat /data/file; /data/deep/script"),
              ExitedWith(0, "from the host\nran\n"));
  for (const std::string attempt :
       {"echo x >> /data/file", "echo x > /data/new", "rm /data/file", "chmod 600 /data/file",
        "mkdir /data/deep/more", "mv /data/file /data/moved", "touch /data/file"}) {
    EXPECT_NE(ExecShell(sandbox, attempt).exit_code, 0) << attempt;
  }
  EXPECT_FALSE(fs::exists(data() + "/new"));
  // The control: the same where it is allowed.
  EXPECT_EQ(
      ExecShell(sandbox, "echo x >> /srv/deep/out/file && echo y > /srv/deep/out/new").exit_code,
      0);
  EXPECT_THAT(ExecShell(sandbox, "cat /data/file /data/new"),
              ExitedWith(0, "from the host\nx\ny\n"));
  EXPECT_TRUE(fs::exists(data() + "/new"));
}

TEST_F(HostMounts, FilesCanBeShownOneByOne) {
  Sandbox sandbox = Must(Make({{.source = data() + "/file", .target = "/opt/one/shown"}}));
  EXPECT_THAT(ExecShell(sandbox, "cat /opt/one/shown; ls /opt/one"),
              ExitedWith(0, "from the host\nshown\n"));
  EXPECT_NE(ExecShell(sandbox, "echo x >> /opt/one/shown").exit_code, 0);
}

TEST_F(HostMounts, TheRestOfTheViewIsAsEver) {
  Sandbox plain = MakeSandbox();
  Sandbox sandbox = Must(Make({{.source = data(), .target = "/data"}}));
  AddProbe(sandbox, "probe");
  const std::string look =
      "ls / | grep -v '^data$'; ls /dev /etc; id -u; pwd; stat -c %A /; stat -c '%A %u %g' /tmp "
      "/usr; "
      "ls /run; cat /proc/1/comm; df /dev/shm | tail -1 | tr -s ' ' | cut -d' ' -f1,2; readlink "
      "/bin; "
      "echo x > /tmp/x && echo y > y && echo z > /dev/shm/z && echo usable";
  const ExecResult usual = ExecShell(plain, look);
  EXPECT_THAT(usual.out.bytes, HasSubstr("usable"));
  EXPECT_EQ(ExecShell(sandbox, look).out.bytes, usual.out.bytes);
  for (const std::string attempt : {"mkdir /new", "touch /etc/new", "umount /data",
                                    "mount --bind /tmp /data", "touch /usr/x"}) {
    EXPECT_NE(ExecShell(sandbox, attempt).exit_code, 0) << attempt;
  }
  EXPECT_EQ(ExecShell(sandbox, "ls " + top()).exit_code, 2);  // Where it lies on the host.
}

TEST_F(HostMounts, SetUserIdAndDevicesAreOfNoUseThere) {
  fs::permissions(data() + "/deep/script", fs::perms::all | fs::perms::set_uid);
  Sandbox sandbox = Must(Make({{.source = data(), .target = "/data", .read_only = false}}));
  EXPECT_THAT(ExecShell(sandbox, "grep ' /data ' /proc/self/mounts | grep -c nosuid,nodev"),
              ExitedWith(0, "1\n"));
}

/// A file system of the test's own, for as long as this lives.
class SmallFileSystem {
 public:
  explicit SmallFileSystem(std::string path) : path_(std::move(path)) {
    mounted_ = ::mount("none", path_.c_str(), "tmpfs", 0, "size=1m,mode=0777") == 0;
  }
  ~SmallFileSystem() {
    if (mounted_) (void)::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallFileSystem(const SmallFileSystem&) = delete;
  SmallFileSystem& operator=(const SmallFileSystem&) = delete;
  bool mounted() const { return mounted_; }

 private:
  std::string path_;
  bool mounted_ = false;
};

TEST_F(HostMounts, MountsBelowAreShownToo) {
  PALMSHED_SKIP_UNLESS(::geteuid() == 0, "only root can mount something there");
  const std::string below = data() + "/deep/below";
  fs::create_directories(below);
  const SmallFileSystem small(below);
  ASSERT_TRUE(small.mounted());
  std::ofstream(below + "/lower") << "lower\n";
  Sandbox sandbox = Must(Make({{.source = data(), .target = "/data"}}));
  EXPECT_THAT(ExecShell(sandbox, "cat /data/deep/below/lower"), ExitedWith(0, "lower\n"));
  EXPECT_NE(ExecShell(sandbox, "echo x > /data/deep/below/new").exit_code, 0);
  EXPECT_THAT(sandbox.Destroy(), Succeeds());
}

TEST_F(HostMounts, WhatWasCheckedIsWhatIsShown) {
  // The path leads elsewhere while the sandbox lives.
  Sandbox sandbox = Must(Make({{.source = data(), .target = "/data"}}));
  fs::rename(data(), top() + "/moved");
  fs::create_directories(data());
  std::ofstream(data() + "/file") << "another\n";
  EXPECT_THAT(ExecShell(sandbox, "cat /data/file"), ExitedWith(0, "from the host\n"));
}

TEST_F(HostMounts, SourcesThatAreRefused) {
  fs::create_directory_symlink(data(), top() + "/link");
  fs::create_symlink("file", data() + "/file-link");
  ASSERT_EQ(::mkfifo((top() + "/fifo").c_str(), 0666), 0);
  (void)MakeSandbox();
  const std::vector<std::pair<std::string, std::string>> refused{
      {top() + "/link", "link"},
      {top() + "/link/deep", "link"},
      {data() + "/file-link", "link"},
      {top() + "/missing", "No such file"},
      {top() + "/fifo", "regular"},
      {"/", "too much"},
      {"/etc", "system"},
      {"/etc/passwd", "system"},
      {"/proc/self", "link"},
      {"/proc/1", "system"},
      {"/dev/null", "regular"},
      {"/sys/kernel", "system"},
      {"/run", "system"},
      {"/usr", "too much"},
      {"/home", "too much"},
      {fs::canonical(workspaces()), "state of the engine"},
      {fs::canonical(workspaces()).parent_path(), ""}};
  for (const auto& [source, why] : refused) {
    if (!fs::exists(fs::symlink_status(source)) && source.find("missing") == source.npos) continue;
    const Error error = Refusal({{.source = source, .target = "/data"}});
    EXPECT_EQ(error.code, ErrorCode::kInvalidOptions) << source;
    EXPECT_EQ(error.field, "mounts[0].source") << source;
    EXPECT_THAT(error.message, HasSubstr(why)) << source;
  }
  // Nothing of that spoils the engine.
  Sandbox sandbox = Must(Make({{.source = data(), .target = "/data"}}));
  EXPECT_THAT(ExecShell(sandbox, "cat /data/file"), ExitedWith(0, "from the host\n"));
}

TEST_F(HostMounts, TheEnginesStateIsKnownByAnyName) {
  fs::create_directories(top() + "/own");
  fs::permissions(top() + "/own", fs::perms::owner_all);
  fs::create_directory_symlink("own", top() + "/link");
  for (const std::string root : {"/own", "//own/", "/./data/../own", "/link", "/link//."}) {
    Engine other = Must(Engine::Create({.workspace_root = top() + root}));
    const auto refusal = [&](const std::string& source) {
      const auto made = other.CreateSandbox(
          {.mounts = {{.source = source, .target = "/data", .read_only = false}},
           .degraded = {"groups"}});
      EXPECT_FALSE(made) << root << " shows " << source;
      return made ? "" : made.error().field + " " + made.error().message;
    };
    Sandbox sandbox = Must(other.CreateSandbox(
        {.mounts = {{.source = data(), .target = "/data"}}, .degraded = {"groups"}}));
    EXPECT_THAT(ExecShell(sandbox, "cat /data/file"), ExitedWith(0, "from the host\n"));
    const std::string home = top() + "/own/" + std::string(sandbox.id());
    for (const std::string& source : {top(), top() + "/own", home, home + "/workspace",
                                      home + "/tmp", top() + "//own/../own/."}) {
      EXPECT_EQ(refusal(source), "mounts[0].source mounts[0].source holds state of the engine")
          << root;
    }
    EXPECT_THAT(sandbox.Destroy(), Succeeds());
  }
}

TEST_F(HostMounts, TheStateOfOtherEnginesIsRefusedToo) {
  // An engine of the same user that was told nothing of where to keep its own.
  AsOrdinaryUser([] {
    const TempDir home(0700), own(0700);
    const std::string state = fs::canonical(home.path());
    fs::create_directories(state + "/data");
    fs::create_directory_symlink(".", state + "/link");
    ASSERT_EQ(::setenv("XDG_STATE_HOME", (state + "/link//state").c_str(), 1), 0);
    Engine other = Must(Engine::Create());
    const Sandbox theirs = MakeSandboxIn(other);
    const std::string there = state + "/state/palmshed/" + std::string(theirs.id());
    ASSERT_TRUE(fs::exists(there + "/workspace"));
    Engine engine = MakeEngine(own);
    for (const std::string& source :
         {there + "/workspace", there, state + "/state/palmshed", state + "/state", state}) {
      const auto made = engine.CreateSandbox(
          {.mounts = {{.source = source, .target = "/data"}}, .degraded = {"groups"}});
      ASSERT_THAT(made, FailsWith(ErrorCode::kInvalidOptions)) << source;
      EXPECT_THAT(made.error().message, HasSubstr("state of the engine")) << source;
    }
    Sandbox sandbox = Must(engine.CreateSandbox(
        {.mounts = {{.source = state + "/data", .target = "/data"}}, .degraded = {"groups"}}));
    EXPECT_THAT(ExecShell(sandbox, "ls /data && echo shown"), ExitedWith(0, "shown\n"));
  });
}

TEST_F(HostMounts, TargetsThatCannotBeMadeAreRefused) {
  const Error error = Refusal({{.source = data(), .target = "/usr/share/no-such-directory"}});
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_EQ(error.field, "mounts");
  EXPECT_NE(error.remedy, "");
  Sandbox sandbox = Must(Make({{.source = data(), .target = "/usr/share"}}));
  EXPECT_THAT(ExecShell(sandbox, "cat /usr/share/file"), ExitedWith(0, "from the host\n"));
}

TEST_F(HostMounts, TakeAViewOfTheSandboxsOwn) {
  const Error error =
      Refusal({{.source = data(), .target = "/data"}}, {.os_filesystem_isolation = false});
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_EQ(error.field, "mounts");
}

TEST_F(HostMounts, GoWithEveryKindOfStorage) {
  const Capabilities capabilities = Must(engine().GetCapabilities());
  for (const Storage storage : capabilities.storage) {
    Sandbox sandbox = Must(
        Make({{.source = data(), .target = "/data"}}, {.disk_quota = 64_MiB, .storage = storage}));
    EXPECT_THAT(ExecShell(sandbox, "cat /data/file > copy; cat copy; echo x > /tmp/x"),
                ExitedWith(0, "from the host\n"));
  }
}

TEST_F(HostMounts, AsManyAsThereMayBe) {
  std::vector<Mount> mounts;
  for (int i = 0; i < 64; ++i) {
    mounts.push_back({.source = data(), .target = "/m/" + std::to_string(i)});
  }
  Sandbox sandbox = Must(Make(mounts));
  EXPECT_THAT(ExecShell(sandbox, "cat /m/*/file | sort -u; ls /m | wc -l"),
              ExitedWith(0, "from the host\n64\n"));
}

}  // namespace
}  // namespace palmshed::tests
