// A host program that may open few files: an engine and its first sandbox work, or the error says
// what there was too little of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <ostream>
#include <string>

#include "palmshed/palmshed.h"
#include "support/filtered_rung.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::AnyOf;
using ::testing::StartsWith;

constexpr char kWorks[] = "works";
constexpr rlim_t kEnough = 1024;

enum class Limit { kSoft, kHard };

std::ostream& operator<<(std::ostream& out, Limit limit) {
  return out << (limit == Limit::kSoft ? "Soft" : "Hard");
}

/// A hard limit is that of the processes which the engine starts, too.
void AllowDescriptors(rlim_t count, Limit which) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = count;
  if (which == Limit::kHard) limit.rlim_max = count;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

std::string Describe(const Error& error) {
  return std::string(ToString(error.code)) + " " + std::to_string(error.sys_errno) + " " +
         error.message + " (" + error.remedy + ")";
}

std::string MakeAnEngineAndASandbox(const TempDir& root) {
  auto engine = Engine::Create({.workspace_root = root.path()});
  if (!engine) return Describe(engine.error());
  const auto sandbox = engine->CreateSandbox();
  return sandbox ? kWorks : Describe(sandbox.error());
}

/// What becomes of it in a process of its own that may open `count` files.
std::string Outcome(rlim_t count, Limit which, const TempDir& root) {
  const ChildHost host([&](ChildHost& self) {
    AllowDescriptors(count, which);
    self.Tell(MakeAnEngineAndASandbox(root));
  });
  return host.Hear();
}

void ExpectWorksOrNamesTheShortage(Limit which) {
  const TempDir root;
  const std::string overloaded = std::string(ToString(ErrorCode::kOverloaded)) + " ";
  // The same limit is one on what all processes of an ordinary user send at a time, unix(7).
  const auto shortage = AnyOf(StartsWith(overloaded + std::to_string(EMFILE)),
                              StartsWith(overloaded + std::to_string(ETOOMANYREFS)));
  EXPECT_EQ(Outcome(kEnough, which, root), kWorks);
  EXPECT_THAT(Outcome(8, which, root), shortage);
  for (rlim_t count = 8; count <= 48; ++count) {
    EXPECT_THAT(Outcome(count, which, root), AnyOf(kWorks, shortage)) << "of " << count;
  }
}

class FewDescriptors : public KernelTest, public ::testing::WithParamInterface<Limit> {};

TEST_P(FewDescriptors, EngineAndSandboxWorkOrNameTheShortage) {
  ExpectWorksOrNamesTheShortage(GetParam());
}

TEST_P(FewDescriptors, WithoutNamespacesToo) {
  PALMSHED_SKIP_UNLESS(HasLandlockScopes(), "Landlock has no scopes here (ABI 6)");
  OnFilteredRung([] { ExpectWorksOrNamesTheShortage(GetParam()); });
}

INSTANTIATE_TEST_SUITE_P(Limits, FewDescriptors, ::testing::Values(Limit::kSoft, Limit::kHard),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace palmshed::tests
