// A project of two files with a dependency from a local path, built and run offline, in each
// language that this host has; and what of the host becomes visible for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Project {
  const char* name;
  std::vector<std::string> programs;
  std::vector<std::pair<std::string, std::string>> files;
  std::string command;  ///< Prints "hello, sandbox" at last.
};

void PrintTo(const Project& project, std::ostream* out) { *out << project.name; }

const Project kProjects[] = {
    {"Python",
     {"python3"},
     {{"greet/greet.py", "def hello(name):\n    return 'hello, ' + name\n"},
      {"main.py",
       "import sys; sys.path.insert(0, 'greet')\nimport greet, json, ssl, sqlite3\n"
       "print(greet.hello('sandbox'))\n"}},
     "python3 main.py"},
    {"Node",
     {"node"},
     {{"greet/package.json", "{\"name\": \"greet\", \"version\": \"1.0.0\"}"},
      {"greet/index.js", "exports.hello = name => 'hello, ' + name;\n"},
      {"main.js", "console.log(require('./greet').hello('sandbox'));\n"}},
     "node main.js"},
    {"Npm",
     {"node", "npm"},
     {{"greet/package.json", "{\"name\": \"greet\", \"version\": \"1.0.0\"}"},
      {"greet/index.js", "exports.hello = name => 'hello, ' + name;\n"},
      {"app/package.json", "{\"name\": \"app\", \"version\": \"1.0.0\"}"},
      {"app/main.js", "console.log(require('greet').hello('sandbox'));\n"}},
     // C086: a packed module is unpacked beside its place and renamed into it.
     "(cd greet && npm pack --offline) >log 2>&1 && cd app && "
     "npm install --offline --no-audit --no-fund ../greet/greet-1.0.0.tgz >>../log 2>&1 && "
     "test ! -L node_modules/greet && node main.js"},
    {"C",
     {"gcc"},
     {{"greet/greet.h", "#include <stdio.h>\nvoid hello(const char *name);\n"},
      {"greet/greet.c",
       "#include \"greet.h\"\nvoid hello(const char *name) "
       "{ printf(\"hello, %s\\n\", name); }\n"},
      {"main.c", "#include \"greet.h\"\nint main(void) { hello(\"sandbox\"); return 0; }\n"}},
     "gcc -Igreet -o main main.c greet/greet.c && ./main"},
    {"Rust",
     {"cargo", "rustc", "cc"},
     {{"greet/Cargo.toml", "[package]\nname='greet'\nversion='0.1.0'\nedition='2021'\n"},
      {"greet/src/lib.rs", "pub fn hello(n: &str) -> String { format!(\"hello, {n}\") }\n"},
      {"app/Cargo.toml",
       "[package]\nname='app'\nversion='0.1.0'\nedition='2021'\n"
       "[dependencies]\ngreet={path='../greet'}\n"},
      {"app/src/main.rs", "fn main() { println!(\"{}\", greet::hello(\"sandbox\")); }\n"}},
     "cd app && cargo run --offline -q"},
    {"Go",
     {"go"},
     {{"greet/go.mod", "module example.test/greet\ngo 1.18\n"},
      {"greet/greet.go",
       "package greet\nfunc Hello(name string) string { return \"hello, \" + name }\n"},
      {"app/go.mod",
       "module example.test/app\ngo 1.18\nrequire example.test/greet v0.0.0\n"
       "replace example.test/greet => ../greet\n"},
      {"app/main.go",
       "package main\nimport \"example.test/greet\"\n"
       "func main() { println2(greet.Hello(\"sandbox\")) }\n"},
      {"app/print.go",
       "package main\nimport \"os\"\n"
       "func println2(s string) { os.Stdout.WriteString(s + \"\\n\") }\n"}},
     "cd app && go run ."},
    {"Java",
     {"java", "javac", "jar"},
     {{"greet/Greet.java",
       "public class Greet { public static String hello(String n) "
       "{ return \"hello, \" + n; } }\n"},
      {"Main.java",
       "public class Main { public static void main(String[] a) "
       "{ System.out.println(Greet.hello(\"sandbox\")); } }\n"}},
     "javac -d out greet/Greet.java && jar cf greet.jar -C out . && "
     "javac -cp greet.jar -d app Main.java && java -cp greet.jar:app Main"},
};

class Runtimes : public KernelTest, public ::testing::WithParamInterface<Project> {};

bool Installed(const Project& project) {
  for (const std::string& program : project.programs) {
    if (!OnPath(program)) return false;
  }
  return true;
}

TEST_P(Runtimes, ProjectBuildsAndRunsOffline) {
  PALMSHED_SKIP_UNLESS(Installed(GetParam()), "not installed on this host");
  Sandbox sandbox = MakeSandbox();
  for (const auto& [path, content] : GetParam().files) Must(sandbox.WriteFile(path, content));
  const ExecResult run = ExecShell(sandbox, GetParam().command, {.timeout = Millis(100'000)});
  EXPECT_THAT(run, ExitedWith(0, "hello, sandbox\n"));
}

INSTANTIATE_TEST_SUITE_P(Languages, Runtimes, ::testing::ValuesIn(kProjects),
                         [](const auto& test) { return std::string(test.param.name); });

class RuntimesOutsideUsr : public KernelTest {};

constexpr char kCanary[] = "palmshed-canary-77c2";

/// An installation of an interpreter as a version manager lays it out, in a home full of secrets.
std::string InstallAmongSecrets(const TempDir& home) {
  const std::string prefix = ".nvm/versions/node/v1.2.3";
  home.AddFile(prefix + "/bin/canary-interpreter", "#!/bin/sh\n. ${0%/bin/*}/lib/node_modules/x\n");
  home.AddFile(prefix + "/lib/node_modules/x", "echo works\n");
  home.AddFile(prefix + "/include/node/node.h", "");
  for (const char* secret :
       {".ssh/id_rsa", ".aws/credentials", ".npmrc", ".nvm/.npmrc", ".nvm/secret",
        ".nvm/versions/secret", ".nvm/versions/node/secret", ".nvm/versions/node/v1.2.3/secret",
        ".nvm/versions/node/v1.2.3/etc/npmrc", ".nvm/versions/node/v9.9.9/lib/secret",
        ".config/token", ".local/share/token", ".cargo/credentials.toml", "project/secret"}) {
    home.AddFile(secret, kCanary);
  }
  const std::string bin = home.path() + "/" + prefix + "/bin";
  std::filesystem::permissions(bin + "/canary-interpreter", std::filesystem::perms(0755));
  return bin;
}

TEST_F(RuntimesOutsideUsr, AreFoundOnPathAndNothingBesideThemIs) {
  // A sandbox has a /tmp and a /var/tmp of its own, so what is installed there stays hidden.
  const char* parent = std::getenv("HOME");
  ASSERT_NE(parent, nullptr);
  const TempDir home(0755, parent), root;
  const std::string bin = InstallAmongSecrets(home);
  Engine engine = Must(Engine::Create(
      {.workspace_root = root.path(), .search_path = bin + ":/usr/local/bin:/usr/bin:/bin"}));
  Sandbox sandbox = MakeSandboxIn(engine);
  EXPECT_THAT(Exec(sandbox, {"canary-interpreter"}), ExitedWith(0, "works\n"));
  const std::string search = "grep -rl " + std::string(kCanary) + " " + home.path();
  EXPECT_THAT(RunOnHost({"sh", "-c", search}, As::kSelf).out, HasSubstr("v1.2.3/secret"));
  EXPECT_THAT(ExecShell(sandbox, search + " 2>/dev/null").out.bytes, "");
  EXPECT_THAT(ExecShell(sandbox, "find " + home.path() + " -type f").out.bytes,
              Not(HasSubstr("secret")));
}

// A directory on PATH must never open a home, or what lies above it.
TEST_F(RuntimesOutsideUsr, HomeOnPathIsNotShown) {
  const TempDir home(0755), root;
  home.AddFile("tool", "#!/bin/sh\necho tool\n");
  home.AddFile("secret", kCanary);
  home.AddFile("bin/tool", "#!/bin/sh\necho tool\n");
  home.AddFile(".local/bin/tool", "#!/bin/sh\necho tool\n");
  home.AddFile(".local/share/secret", kCanary);
  ASSERT_EQ(::setenv("HOME", home.path().c_str(), 1), 0);
  Engine engine =
      Must(Engine::Create({.workspace_root = root.path(),
                           .search_path = home.path() + ":" + home.path() + "/bin:" + home.path() +
                                          "/.local/bin:/usr/bin:/bin"}));
  Sandbox sandbox = MakeSandboxIn(engine);
  for (const char* file : {"/secret", "/.local/share/secret"}) {
    ExpectOnlyOutside(sandbox, {"read", home.path() + file});
  }
}

// The runtimes of this very host: the real directories beside them stay out of sight.
TEST_F(RuntimesOutsideUsr, RealNeighboursStayHidden) {
  Sandbox sandbox = MakeSandbox();
  const char* home = std::getenv("HOME");
  PALMSHED_SKIP_UNLESS(home != nullptr && std::string(home) != "/", "no home directory");
  for (const char* path :
       {"", "/.ssh", "/.config", "/.local", "/.cache", "/.bashrc", "/.profile", "/.cargo/registry",
        "/.cargo/credentials.toml", "/.npmrc", "/.gitconfig", "/.pyenv/.git", "/.m2"}) {
    const ExecResult run = ExecShell(sandbox, "ls -A " + std::string(home) + path + " 2>/dev/null");
    // The home itself may hold mount points of runtimes, and nothing else.
    if (*path == '\0') {
      EXPECT_THAT(run.out.bytes, Not(HasSubstr(".bashrc")));
    } else {
      EXPECT_EQ(run.out.bytes, "") << path;
    }
  }
}

}  // namespace
}  // namespace palmshed::tests
