#include "workspace/path.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "palmshed/error.h"

namespace palmshed::workspace {
namespace {

using namespace std::string_view_literals;

TEST(SandboxPath, SplitsOffTheLastComponent) {
  const auto path = SandboxPath::Parse("a/b/c.txt");
  ASSERT_TRUE(path);
  EXPECT_EQ(path->parent(), "a/b");
  EXPECT_EQ(path->name(), "c.txt");
  EXPECT_EQ(path->Text(), "a/b/c.txt");
  EXPECT_FALSE(path->directory_only());
}

TEST(SandboxPath, DropsWhatSaysNothing) {
  const auto path = SandboxPath::Parse("./a//./b");
  ASSERT_TRUE(path);
  EXPECT_EQ(path->Text(), "a/b");
  EXPECT_EQ(path->given(), "./a//./b");
}

TEST(SandboxPath, KeepsDotDotForTheKernel) {
  const auto path = SandboxPath::Parse("link/../x");
  ASSERT_TRUE(path);
  EXPECT_EQ(path->Text(), "link/../x");
}

TEST(SandboxPath, RemembersATrailingSlash) {
  for (const std::string_view text : {"a/"sv, "a/."sv, "a//"sv}) {
    const auto path = SandboxPath::Parse(text);
    ASSERT_TRUE(path) << text;
    EXPECT_EQ(path->Text(), "a") << text;
    EXPECT_TRUE(path->directory_only()) << text;
  }
}

TEST(SandboxPath, EmptyAndDotAreTheRoot) {
  for (const std::string_view text : {""sv, "."sv, "./"sv}) {
    const auto path = SandboxPath::Parse(text);
    ASSERT_TRUE(path) << text;
    EXPECT_TRUE(path->IsRoot()) << text;
    EXPECT_EQ(path->Text(), ".") << text;
  }
}

TEST(SandboxPath, AbsoluteLeavesTheWorkspace) {
  const auto path = SandboxPath::Parse("/etc/passwd");
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().code, ErrorCode::kFsError);
  EXPECT_TRUE(path.error().message.contains("/etc/passwd leaves the workspace"));
}

TEST(SandboxPath, NulIsAnInvalidOption) {
  const auto path = SandboxPath::Parse("a\0b"sv);
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().code, ErrorCode::kInvalidOptions);
  EXPECT_EQ(path.error().field, "path");
}

TEST(SandboxPath, LengthAndDepthAreBounded) {
  EXPECT_TRUE(SandboxPath::Parse(std::string(kMaxPathBytes, 'a')));
  EXPECT_FALSE(SandboxPath::Parse(std::string(kMaxPathBytes + 1, 'a')));
  std::string deep;
  for (std::size_t i = 0; i < kMaxPathComponents; ++i) deep += "d/";
  EXPECT_TRUE(SandboxPath::Parse(deep));
  EXPECT_FALSE(SandboxPath::Parse(deep + "d"));
}

TEST(LinkStaysInside, CountsLevels) {
  EXPECT_TRUE(LinkStaysInside(0, "a"));
  EXPECT_TRUE(LinkStaysInside(2, "../../a"));
  EXPECT_TRUE(LinkStaysInside(0, "a/.."));
  EXPECT_FALSE(LinkStaysInside(0, "../a"));
  EXPECT_FALSE(LinkStaysInside(1, "../../a/b"));
  EXPECT_FALSE(LinkStaysInside(1, "a/../../../b"));
  EXPECT_FALSE(LinkStaysInside(5, "/a"));
}

TEST(DepthOf, CountsLevels) {
  EXPECT_EQ(DepthOf("."), 0U);
  EXPECT_EQ(DepthOf("a/b"), 2U);
  EXPECT_EQ(DepthOf("a/../b"), 1U);
}

}  // namespace
}  // namespace palmshed::workspace
