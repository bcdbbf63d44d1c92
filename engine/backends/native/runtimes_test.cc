#include "backends/native/runtimes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "backends/native/fake_tree.h"
#include "backends/native/runtime_layouts.h"
#include "palmshed/options.h"

namespace palmshed::backends::native {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kCanary[] = "CANARY";

// A host with a home directory full of things that nobody may see.
class RuntimesTest : public ::testing::Test {
 protected:
  RuntimesTest() {
    for (const char* secret :
         {"/.ssh/", "/.config/gh/", "/.local/share/", "/.aws/", "/", "/src/"}) {
      tree_.File("/home/user" + std::string(secret) + kCanary);
    }
    tree_.File("/etc/" + std::string(kCanary));
    tree_.File("/opt/" + std::string(kCanary));
  }

  std::string Home(const std::string& path = "") const { return tree_.At("/home/user" + path); }

  // An installation prefix with canaries beside what may be shown.
  void Prefix(const std::string& prefix, std::initializer_list<const char*> parts) const {
    for (const char* part : parts) tree_.File(prefix + "/" + part + "/file");
    tree_.File(prefix + "/" + kCanary);
    tree_.File(prefix + "/var/" + kCanary);
    tree_.File(prefix + "/etc/" + kCanary);
  }

  Runtimes Find(std::initializer_list<std::string> entries, const Env& env = {}) const {
    std::string path;
    for (const std::string& entry : entries) {
      path += (path.empty() ? "" : ":") + (entry.starts_with('/') ? tree_.At(entry) : entry);
    }
    Runtimes found = FindRuntimes(
        {.path = path, .home = Home(), .env = env, .hidden = {tree_.At("/etc"), tree_.At("/tmp")}});
    ExpectNoCanary(found);
    return found;
  }

  // No canary lies below anything that is shown, and nothing shown depends on a link.
  void ExpectNoCanary(const Runtimes& found) const {
    for (const Runtimes::Bind& bind : found.binds) {
      EXPECT_EQ(std::filesystem::canonical(bind.path), bind.path);
      EXPECT_FALSE(IsWithin(Home(), bind.path)) << bind.path;
      if (!bind.directory) continue;
      for (const auto& entry : std::filesystem::recursive_directory_iterator(bind.path)) {
        EXPECT_NE(entry.path().filename(), kCanary) << entry.path();
      }
    }
  }

  std::vector<std::string> Shown(const Runtimes& found) const {
    std::vector<std::string> paths;
    for (const Runtimes::Bind& bind : found.binds) {
      EXPECT_TRUE(IsWithin(bind.path, tree_.root()));
      paths.push_back(bind.path.substr(tree_.root().size()));
    }
    return paths;
  }

  // The directories that go before the fixed ones.
  std::vector<std::string> Added(const Runtimes& found) const {
    std::vector<std::string> paths;
    for (const std::string& path : found.search_path) {
      if (IsWithin(path, tree_.root())) paths.push_back(path.substr(tree_.root().size()));
    }
    EXPECT_EQ(found.search_path.size(), paths.size() + kFixedPath.size());
    return paths;
  }

  void ExpectNothing(const Runtimes& found) const {
    EXPECT_THAT(found.search_path, ElementsAreArray(kFixedPath));
    EXPECT_THAT(found.binds, IsEmpty());
    EXPECT_THAT(found.links, IsEmpty());
    EXPECT_THAT(found.files, IsEmpty());
    EXPECT_THAT(found.env, IsEmpty());
  }

  FakeTree tree_;
};

TEST_F(RuntimesTest, WithoutAnythingThereIsTheFixedPath) {
  ExpectNothing(FindRuntimes({}));
  ExpectNothing(FindRuntimes({.path = "::/bin:.:bin:/no/such/bin:/usr/bin", .home = "/nowhere"}));
}

TEST_F(RuntimesTest, EntriesBelowUsrNeedNoBindAndKeepTheirOrder) {
  const Runtimes found = FindRuntimes({.path = "/usr/bin:/usr/share:/usr/lib:/usr/share"});
  EXPECT_THAT(found.binds, IsEmpty());
  EXPECT_THAT(found.search_path,
              ElementsAre("/usr/share", "/usr/lib", "/usr/local/sbin", "/usr/local/bin",
                          "/usr/sbin", "/usr/bin", "/sbin", "/bin"));
}

TEST_F(RuntimesTest, NvmShowsTheVersionOnPathOnly) {
  const std::string nvm = "/home/user/.nvm";
  Prefix(nvm + "/versions/node/v20.1.0", {"bin", "lib/node_modules", "include", "share"});
  Prefix(nvm + "/versions/node/v18.0.0", {"bin", "lib/node_modules"});
  tree_.File(nvm + "/.cache/" + kCanary);
  const Runtimes found = Find({nvm + "/versions/node/v20.1.0/bin"});
  const std::string version = nvm + "/versions/node/v20.1.0";
  EXPECT_THAT(Shown(found), UnorderedElementsAre(version + "/bin", version + "/lib",
                                                 version + "/include", version + "/share"));
  EXPECT_THAT(Added(found), ElementsAre(version + "/bin"));
}

TEST_F(RuntimesTest, PyenvResolvesTheGlobalVersion) {
  const std::string pyenv = "/home/user/.pyenv";
  Prefix(pyenv + "/versions/3.11.7", {"bin", "lib", "include", "share"});
  Prefix(pyenv + "/versions/3.12.1", {"bin", "lib"});
  tree_.File(pyenv + "/shims/python3");
  tree_.File(pyenv + "/version", "3.11.7\n");
  tree_.File(pyenv + "/plugins/" + kCanary);
  const Runtimes found = Find({pyenv + "/shims", pyenv + "/bin"});
  const std::string version = pyenv + "/versions/3.11.7";
  EXPECT_THAT(Added(found), ElementsAre(version + "/bin"));
  EXPECT_THAT(Shown(found), UnorderedElementsAre(version + "/bin", version + "/lib",
                                                 version + "/include", version + "/share"));
}

TEST_F(RuntimesTest, PyenvVersionVariableWinsAndNamesTheNewestOfASeries) {
  const std::string pyenv = "/home/user/.pyenv";
  for (const char* version : {"3.9.18", "3.11.2", "3.11.10", "3.11.9"}) {
    Prefix(pyenv + "/versions/" + version, {"bin", "lib"});
  }
  tree_.Directory(pyenv + "/shims");
  tree_.File(pyenv + "/version", "3.9.18\n");
  const Runtimes found = Find({pyenv + "/shims"}, {{"PYENV_VERSION", "3.11:3.9.18"}});
  EXPECT_THAT(Added(found),
              ElementsAre(pyenv + "/versions/3.11.10/bin", pyenv + "/versions/3.9.18/bin"));
}

TEST_F(RuntimesTest, PyenvVersionCannotNameAnotherDirectory) {
  const std::string pyenv = "/home/user/.pyenv";
  Prefix("/home/user/src", {"bin", "lib"});
  Prefix("/home/user/.pyenv", {"bin", "lib"});
  tree_.Directory(pyenv + "/shims");
  tree_.Directory(pyenv + "/versions");
  for (const char* version : {"..", "../../src", ".", "system", "/", ""}) {
    ExpectNothing(Find({pyenv + "/shims"}, {{"PYENV_VERSION", version}}));
  }
}

TEST_F(RuntimesTest, CargoShowsBinAndTheActiveToolchain) {
  tree_.File("/home/user/.cargo/bin/rustup");
  tree_.File("/home/user/.cargo/credentials.toml", kCanary);
  tree_.File("/home/user/.cargo/registry/" + std::string(kCanary));
  tree_.File("/home/user/.cargo/lib/" + std::string(kCanary));
  const std::string rustup = "/home/user/.rustup";
  Prefix(rustup + "/toolchains/stable-x86_64-unknown-linux-gnu", {"bin", "lib", "share"});
  Prefix(rustup + "/toolchains/nightly-x86_64-unknown-linux-gnu", {"bin", "lib"});
  tree_.File(rustup + "/settings.toml",
             "version = \"12\"\ndefault_toolchain = \"stable-x86_64-unknown-linux-gnu\"\n"
             "[overrides]\n\"/home/user/src/secret-project\" = \"nightly\"\n");
  const Runtimes found = Find({"/home/user/.cargo/bin", "/home/user/.cargo/bin"});
  const std::string toolchain = rustup + "/toolchains/stable-x86_64-unknown-linux-gnu";
  EXPECT_THAT(Added(found), ElementsAre(toolchain + "/bin", "/home/user/.cargo/bin"));
  EXPECT_THAT(Shown(found), UnorderedElementsAre("/home/user/.cargo/bin", toolchain + "/bin",
                                                 toolchain + "/lib", toolchain + "/share"));
  EXPECT_THAT(found.env, ElementsAre(Pair("RUSTUP_HOME", Home("/.rustup")),
                                     Pair("RUSTUP_TOOLCHAIN", "stable-x86_64-unknown-linux-gnu")));
  ASSERT_EQ(found.files.size(), 1U);
  EXPECT_EQ(found.files[0].path, Home("/.rustup/settings.toml"));
  EXPECT_EQ(found.files[0].content.find("secret-project"), std::string::npos);
}

TEST_F(RuntimesTest, RustupVariablesWinAndShortNamesAreCompleted) {
  tree_.File("/opt/rust/cargo/bin/rustup");
  tree_.File("/opt/rust/cargo/" + std::string(kCanary));
  Prefix("/opt/rust/rustup/toolchains/nightly-x86_64-unknown-linux-gnu", {"bin", "lib"});
  const Runtimes found =
      Find({"/opt/rust/cargo/bin"}, {{"RUSTUP_HOME", tree_.At("/opt/rust/rustup")},
                                     {"CARGO_HOME", tree_.At("/opt/rust/cargo")},
                                     {"RUSTUP_TOOLCHAIN", "nightly"}});
  const std::string toolchain = "/opt/rust/rustup/toolchains/nightly-x86_64-unknown-linux-gnu";
  EXPECT_THAT(Added(found), ElementsAre(toolchain + "/bin", "/opt/rust/cargo/bin"));
  EXPECT_THAT(found.env, Contains(Pair("RUSTUP_TOOLCHAIN", "nightly-x86_64-unknown-linux-gnu")));
}

TEST_F(RuntimesTest, LinkedToolchainsStayOutOfSight) {
  tree_.File("/home/user/.cargo/bin/rustup");
  Prefix("/home/user/src/rust/build", {"bin", "lib"});
  tree_.Link("/home/user/.rustup/toolchains/mine", Home("/src/rust/build"));
  const Runtimes found = Find({"/home/user/.cargo/bin"}, {{"RUSTUP_TOOLCHAIN", "mine"}});
  EXPECT_THAT(Shown(found), ElementsAre("/home/user/.cargo/bin"));
  EXPECT_THAT(found.env, IsEmpty());
}

TEST_F(RuntimesTest, SdkmanShowsTheCurrentJdkAndSetsJavaHome) {
  const std::string java = "/home/user/.sdkman/candidates/java";
  Prefix(java + "/21.0.2-tem", {"bin", "conf", "include", "jmods", "legal"});
  tree_.File(java + "/21.0.2-tem/lib/jvm.cfg");
  tree_.File(java + "/21.0.2-tem/release");
  Prefix(java + "/17.0.1-tem", {"bin", "lib"});
  tree_.Link(java + "/current", "21.0.2-tem");
  tree_.File("/home/user/.sdkman/etc/" + std::string(kCanary));
  const Runtimes found = Find({java + "/current/bin"});
  const std::string version = java + "/21.0.2-tem";
  EXPECT_THAT(Added(found), ElementsAre(version + "/bin"));
  EXPECT_THAT(Shown(found),
              UnorderedElementsAre(version + "/bin", version + "/lib", version + "/conf",
                                   version + "/include", version + "/jmods", version + "/legal",
                                   version + "/release"));
  EXPECT_THAT(found.env, ElementsAre(Pair("JAVA_HOME", tree_.At(version))));
}

TEST_F(RuntimesTest, MavenSettingsStayOutOfSight) {
  Prefix("/opt/maven", {"bin", "boot", "lib", "conf/logging"});
  tree_.File("/opt/maven/conf/" + std::string(kCanary));
  EXPECT_THAT(Shown(Find({"/opt/maven/bin"})),
              UnorderedElementsAre("/opt/maven/bin", "/opt/maven/boot", "/opt/maven/lib",
                                   "/opt/maven/conf/logging"));
}

TEST_F(RuntimesTest, PartsBelowALinkStayOutOfSight) {
  Prefix("/opt/maven", {"bin", "boot", "lib"});
  tree_.File("/home/user/src/logging/" + std::string(kCanary));
  tree_.Link("/opt/maven/conf", Home("/src"));
  EXPECT_THAT(Shown(Find({"/opt/maven/bin"})),
              UnorderedElementsAre("/opt/maven/bin", "/opt/maven/boot", "/opt/maven/lib"));
}

TEST_F(RuntimesTest, AsdfShowsTheVersionsOfTheHomeDirectory) {
  const std::string asdf = "/home/user/.asdf";
  Prefix(asdf + "/installs/nodejs/20.1.0", {"bin", "lib/node_modules"});
  Prefix(asdf + "/installs/golang/1.22.0/go", {"bin", "pkg/tool", "src"});
  Prefix(asdf + "/installs/ruby/3.3.0", {"bin", "lib"});
  tree_.Directory(asdf + "/shims");
  tree_.File("/home/user/.tool-versions",
             "# tools\nnodejs 20.1.0 # lts\ngolang 1.22.0\nruby ../../../src\n../.. x\n");
  const Runtimes found = Find({asdf + "/shims"});
  EXPECT_THAT(Added(found), ElementsAre(asdf + "/installs/nodejs/20.1.0/bin",
                                        asdf + "/installs/golang/1.22.0/go/bin"));
  EXPECT_THAT(Shown(found), Contains(asdf + "/installs/golang/1.22.0/go/src"));
}

TEST_F(RuntimesTest, VenvShowsItsBaseToo) {
  Prefix("/home/user/src/app/.venv", {"bin", "lib", "include"});
  tree_.File("/home/user/src/app/.venv/pyvenv.cfg",
             "home = " + tree_.At("/opt/python/bin") + "\nversion = 3.11.7\n");
  tree_.Link("/home/user/src/app/.venv/lib64", "lib");
  tree_.File("/home/user/src/app/" + std::string(kCanary));
  Prefix("/opt/python", {"bin", "lib"});
  const Runtimes found = Find({"/home/user/src/app/.venv/bin"});
  EXPECT_THAT(Added(found), ElementsAre("/home/user/src/app/.venv/bin"));
  EXPECT_THAT(Shown(found),
              UnorderedElementsAre("/home/user/src/app/.venv/bin", "/home/user/src/app/.venv/lib",
                                   "/home/user/src/app/.venv/include",
                                   "/home/user/src/app/.venv/pyvenv.cfg", "/opt/python/bin",
                                   "/opt/python/lib"));
  EXPECT_THAT(found.links,
              ElementsAre(Runtimes::Link{tree_.At("/home/user/src/app/.venv/lib64"), "lib"}));
}

TEST_F(RuntimesTest, CondaShowsCertificatesAndNoPackageCache) {
  Prefix("/home/user/miniconda3", {"bin", "lib", "ssl", "conda-meta"});
  tree_.File("/home/user/miniconda3/pkgs/" + std::string(kCanary));
  tree_.File("/home/user/miniconda3/.condarc", kCanary);
  EXPECT_THAT(Shown(Find({"/home/user/miniconda3/bin"})),
              UnorderedElementsAre("/home/user/miniconda3/bin", "/home/user/miniconda3/lib",
                                   "/home/user/miniconda3/ssl"));
}

TEST_F(RuntimesTest, HomebrewShowsTheCellar) {
  const std::string brew = "/home/linuxbrew/.linuxbrew";
  Prefix(brew, {"bin", "sbin", "lib", "opt", "Cellar/jq"});
  tree_.File(brew + "/etc/ca-certificates/cert.pem");
  tree_.File(brew + "/etc/openssl@3/private/" + kCanary);
  EXPECT_THAT(Shown(Find({brew + "/bin", brew + "/sbin"})),
              UnorderedElementsAre(brew + "/bin", brew + "/sbin", brew + "/lib", brew + "/opt",
                                   brew + "/Cellar", brew + "/etc/ca-certificates"));
}

TEST_F(RuntimesTest, GoShowsItsSources) {
  Prefix("/opt/go", {"bin", "lib", "src", "pkg/tool"});
  tree_.File("/opt/go/VERSION");
  const Runtimes found = Find({"/opt/go/bin"});
  EXPECT_THAT(Shown(found), UnorderedElementsAre("/opt/go/bin", "/opt/go/lib", "/opt/go/src",
                                                 "/opt/go/pkg", "/opt/go/VERSION"));
  EXPECT_THAT(found.binds, Contains(Runtimes::Bind{tree_.At("/opt/go/VERSION"), false}));
}

TEST_F(RuntimesTest, UnknownPrefixNeedsBinAndLib) {
  Prefix("/opt/tool", {"bin", "lib", "lib64", "libexec", "include", "share", "conf", "src"});
  Prefix("/opt/scripts", {"bin", "share"});
  tree_.File("/opt/odd/bin/file");
  tree_.File("/opt/odd/lib");
  const Runtimes found = Find({"/opt/tool/bin", "/opt/scripts/bin", "/opt/odd/bin", "/opt/tool"});
  EXPECT_THAT(Shown(found),
              UnorderedElementsAre("/opt/tool/bin", "/opt/tool/lib", "/opt/tool/lib64",
                                   "/opt/tool/libexec", "/opt/tool/include", "/opt/tool/share"));
  EXPECT_THAT(Added(found), ElementsAre("/opt/tool/bin"));
}

TEST_F(RuntimesTest, HomeAndWhatContainsItIsNeverAPrefix) {
  for (const char* prefix : {"/home/user", "/home", ""}) {
    tree_.File(std::string(prefix) + "/bin/file");
    tree_.File(std::string(prefix) + "/lib/file");
  }
  ExpectNothing(Find({"/home/user/bin", "/home/bin", "/bin"}));
}

TEST_F(RuntimesTest, PrivateDirectoriesOfAHomeAreNeverShown) {
  for (const char* prefix : {"/home/user/.local", "/home/user/.config/tool", "/srv/x/.ssh",
                             "/home/user/.local/share/mise/installs/node/20"}) {
    Prefix(prefix, {"bin", "lib", "share"});
  }
  ExpectNothing(Find({"/home/user/.local/bin", "/home/user/.config/tool/bin", "/srv/x/.ssh/bin",
                      "/home/user/.local/share/mise/installs/node/20/bin"}));
}

TEST_F(RuntimesTest, DirectoriesOfTheSandboxAreNotTakenFromTheHost) {
  Prefix("/tmp/tool", {"bin", "lib"});
  Prefix("/etc/tool", {"bin", "lib"});
  ExpectNothing(Find({"/tmp/tool/bin", "/etc/tool/bin"}));
}

TEST_F(RuntimesTest, LinksOnPathAreJudgedByWhereTheyLead) {
  Prefix("/data/node", {"bin", "lib/node_modules"});
  tree_.File("/home/user/lib/file");
  tree_.File("/home/user/bin/file");
  tree_.Link("/opt/node/bin", tree_.At("/data/node/bin"));
  tree_.Link("/opt/evil/bin", Home("/bin"));
  tree_.Directory("/opt/evil/lib");
  tree_.Link("/opt/ssh/bin", Home("/.ssh"));
  tree_.Directory("/opt/ssh/lib");
  const Runtimes found = Find({"/opt/node/bin", "/opt/evil/bin", "/opt/ssh/bin"});
  EXPECT_THAT(Shown(found), UnorderedElementsAre("/data/node/bin", "/data/node/lib"));
  EXPECT_THAT(Added(found), ElementsAre("/data/node/bin"));
}

TEST_F(RuntimesTest, LinksInsideAPrefixAreNotFollowed) {
  Prefix("/opt/tool", {"bin", "lib"});
  tree_.Link("/opt/tool/share", Home("/.ssh"));
  tree_.Link("/opt/tool/include", "../../home/user");
  tree_.Link("/opt/tool/lib64", "lib");
  Prefix("/opt/faked", {"bin"});
  tree_.Link("/opt/faked/lib", Home("/src"));
  const Runtimes found = Find({"/opt/tool/bin", "/opt/faked/bin"});
  EXPECT_THAT(Shown(found), UnorderedElementsAre("/opt/tool/bin", "/opt/tool/lib"));
  EXPECT_THAT(found.links, ElementsAre(Runtimes::Link{tree_.At("/opt/tool/lib64"), "lib"}));
}

TEST(IsWithin, ComparesWholeNames) {
  EXPECT_TRUE(IsWithin("/a/b", "/a"));
  EXPECT_TRUE(IsWithin("/a", "/a"));
  EXPECT_TRUE(IsWithin("/a", "/"));
  EXPECT_FALSE(IsWithin("/ab", "/a"));
  EXPECT_FALSE(IsWithin("/a", "/a/b"));
}

}  // namespace
}  // namespace palmshed::backends::native
