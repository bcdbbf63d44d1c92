#include "support/kernel_test.h"

#include <fnmatch.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/eventually.h"
#include "support/must.h"
#include "support/process.h"
#include "support/residue.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::IsEmpty;

constexpr Millis kPatience{30'000};

/// Processes that the kernel is still taking down after a kill get a moment.
bool NobodyIsLeft() {
  return Eventually([] { return Descendants().empty(); }, std::chrono::seconds(2));
}

}  // namespace

KernelTest::KernelTest() : before_((AdoptOrphans(), Residue::Snapshot())) {}

KernelTest::~KernelTest() {
  engine_.reset();
  EXPECT_TRUE(NobodyIsLeft()) << ::testing::PrintToString(Descendants());
  EXPECT_THAT(LeftBehind(), IsEmpty());
  EXPECT_THAT(TreeOf(root_.path()), IsEmpty());
}

/// Other engines make and remove what is theirs all the time: only what stays was forgotten.
std::vector<std::string> KernelTest::LeftBehind() const {
  std::vector<std::string> left = Residue::Snapshot().Since(before_);
  (void)Eventually([&] {
    const std::vector<std::string> now = Residue::Snapshot().Since(before_);
    std::erase_if(
        left, [&](const std::string& entry) { return std::ranges::find(now, entry) == now.end(); });
    return left.empty();
  });
  return left;
}

Engine& KernelTest::engine() {
  if (!engine_) engine_.emplace(MakeEngine(root_));
  return *engine_;
}

Sandbox KernelTest::MakeSandbox(SandboxOptions options) {
  return MakeSandboxIn(engine(), std::move(options));
}

Engine MakeEngine(const TempDir& root) {
  return Must(Engine::Create({.workspace_root = root.path()}));
}

Sandbox MakeSandboxIn(Engine& engine, SandboxOptions options) {
  Sandbox sandbox = Must(engine.CreateSandbox(std::move(options)));
  AddProbe(sandbox, "probe");
  return sandbox;
}

void AddProbe(Sandbox& sandbox, const std::string& name) {
  static const std::string program = Slurp(ProbePath());
  Must(sandbox.WriteFile(name, program, 0755));
}

ExecResult Exec(Sandbox& sandbox, std::vector<std::string> argv, ExecOptions options) {
  if (!options.timeout) options.timeout = kPatience;
  return Must(sandbox.Run(std::move(argv), std::move(options)));
}

ExecResult ExecShell(Sandbox& sandbox, std::string command, ExecOptions options) {
  if (!options.timeout) options.timeout = kPatience;
  return Must(sandbox.RunShell(std::move(command), std::move(options)));
}

bool AwaitOutput(const Execution& execution, std::string_view text) {
  std::string seen;
  std::byte buffer[4096];
  while (seen.find(text) == seen.npos) {
    const auto size = execution.Read(Stream::kStdout, seen.size(), buffer, kPatience);
    if (!size || *size == 0) return false;
    seen.append(reinterpret_cast<const char*>(buffer), *size);
  }
  return true;
}

std::optional<std::int64_t> Evidence(const ExecResult& result, std::string_view name) {
  for (const auto& [key, value] : result.termination.evidence) {
    if (key == name) return value;
  }
  return std::nullopt;
}

void ExpectOnlyOutside(Sandbox& sandbox, std::vector<std::string> probe_arguments) {
  const std::string what = ::testing::PrintToString(probe_arguments);
  probe_arguments.insert(probe_arguments.begin(), ProbePath());
  const HostRun outside = RunOnHost(probe_arguments);
  EXPECT_EQ(outside.exit_code, kReached) << "the control failed: " << what << ": " << outside.out;
  probe_arguments.front() = "./probe";
  const ExecResult inside = Exec(sandbox, probe_arguments);
  EXPECT_EQ(inside.exit_code, kRefused) << what << ": " << ::testing::PrintToString(inside);
}

bool HasLoopDevices() { return ::geteuid() == 0 && ::access("/dev/loop-control", W_OK) == 0; }

bool SkipAllowed() {
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string name = std::string(test->test_suite_name()) + "." + test->name();
  const std::string profile = ::geteuid() == 0 ? "root" : "user";
  std::ifstream list(ProgramDirectory() + "/allowed_skips.txt");
  for (std::string line; std::getline(list, line);) {
    std::istringstream words(line);
    std::string allowed_profile, allowed_name;
    words >> allowed_profile >> allowed_name;
    const bool listed = ::fnmatch(allowed_name.c_str(), name.c_str(), 0) == 0;
    if (listed && (allowed_profile == profile || allowed_profile == "any")) {
      return true;
    }
  }
  return false;
}

}  // namespace palmshed::tests
