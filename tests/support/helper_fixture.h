// A launcher and a sandbox for tests that run as root and as an ordinary user, and with each of the
// ways in which init tells the processes of one execution from those of another.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>
#include <ostream>
#include <string>

#include "child/step_names.h"
#include "support/helper_driver.h"

namespace palmshed::testing {

struct HelperMode {
  const char* name;
  bool root;
  std::uint32_t init_flags = child::kInitLoopback | child::kInitSignalScope;
  std::uint32_t launcher_flags = 0;
};

inline constexpr std::uint32_t kNoScope = child::kInitLoopback;
inline constexpr std::uint32_t kNoProcfs =
    child::kInitLoopback | child::kInitSignalScope | child::kInitNoProc;

inline constexpr HelperMode kRootMode{"Root", true};
inline constexpr HelperMode kOrdinaryMode{"Ordinary", false};
inline constexpr HelperMode kEveryUser[] = {kRootMode, kOrdinaryMode};
inline constexpr HelperMode kEveryMode[] = {
    kRootMode,
    kOrdinaryMode,
    {"RootByMark", true, kNoScope},
    {"OrdinaryByMark", false, kNoScope},
    {"RootWithoutProc", true, kNoProcfs},
    {"RootByMarkWithoutProc", true, kNoScope | child::kInitNoProc},
    {"RootWithoutUserNamespace", true, child::kInitLoopback | child::kInitSignalScope,
     child::kLauncherNoUserNamespace},
};

inline void PrintTo(const HelperMode& mode, std::ostream* out) { *out << mode.name; }

inline std::string ModeName(const ::testing::TestParamInfo<HelperMode>& mode) {
  return mode.param.name;
}

inline std::string Explain(const LauncherProcess& launcher) {
  if (!launcher.ready()) return "the launcher died";
  return std::string(child::StepName(launcher.ready()->step)) + ", errno " +
         std::to_string(launcher.ready()->sys_errno) + ", detail " +
         std::to_string(launcher.ready()->detail);
}

inline bool IsReady(const LauncherProcess& launcher) {
  return launcher.ready() && launcher.ready()->answer == child::LauncherAnswer::kReady;
}

/// Why a mode cannot be tested here; empty when it can.
inline std::string WhySkip(const HelperMode& mode) {
  if (mode.root && ::getuid() != 0) return "needs root";
  const bool scope = (mode.init_flags & child::kInitSignalScope) != 0;
  return scope && !HasSignalScope() ? "needs Landlock ABI 6" : "";
}

class HelperTest : public ::testing::TestWithParam<HelperMode> {
 protected:
  void SetUp() override {
    if (const std::string why = WhySkip(GetParam()); !why.empty()) GTEST_SKIP() << why;
    launcher_.emplace(LauncherOptions{.root = GetParam().root, .flags = GetParam().launcher_flags});
    ASSERT_TRUE(IsReady(*launcher_)) << Explain(*launcher_);
    sandbox_.emplace(&*launcher_, Spec());
    ASSERT_TRUE(sandbox_->ok()) << sandbox_->why_not();
  }

  static SandboxSpec Spec() { return {.flags = GetParam().init_flags}; }

  std::optional<LauncherProcess> launcher_;
  std::optional<TestSandbox> sandbox_;
};

}  // namespace palmshed::testing
