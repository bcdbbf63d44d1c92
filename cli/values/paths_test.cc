#include "cli/values/paths.h"

#include <gtest/gtest.h>

#include <string_view>

namespace palmshed::cli {
namespace {

struct CopyCase {
  std::string_view text{};
  std::string_view source{};
  std::string_view target{};
};

TEST(ParseCopy, FindsSourceAndTarget) {
  const CopyCase cases[]{
      {"a.py", "a.py", "a.py"},
      {"dir/a.py", "dir/a.py", "a.py"},
      {"/x/dir/", "/x/dir/", "dir"},
      {"a.py:src/b.py", "a.py", "src/b.py"},
      {"a:b:c", "a:b", "c"},
      {"x/a.py:src/", "x/a.py", "src/a.py"},
      {".", ".", "."},
      {"..", "..", "."},
      {"dir/.", "dir/.", "."},
      {"/", "/", "."},
      {".:sub", ".", "sub"},
  };
  for (const auto& [text, source, target] : cases) {
    const auto copy = ParseCopy(text);
    ASSERT_TRUE(copy) << text;
    EXPECT_EQ(copy->source, source) << text;
    EXPECT_EQ(copy->target, target) << text;
  }
}

TEST(ParseCopy, RefusesAnEmptySide) {
  for (const std::string_view text : {"", ":", "a:", ":b"}) {
    const auto copy = ParseCopy(text);
    ASSERT_FALSE(copy) << text;
    EXPECT_EQ(copy.error().field, "--copy");
  }
}

TEST(ParseVolume, IsReadOnlyUnlessToldOtherwise) {
  EXPECT_TRUE(ParseVolume("/a:/b", "/cwd")->read_only);
  EXPECT_TRUE(ParseVolume("/a:/b:ro", "/cwd")->read_only);
  EXPECT_FALSE(ParseVolume("/a:/b:rw", "/cwd")->read_only);
}

TEST(ParseVolume, TakesARelativeSourceFromTheCurrentDirectory) {
  const auto mount = ParseVolume("data:/mnt/data:rw", "/cwd");
  ASSERT_TRUE(mount);
  EXPECT_EQ(mount->source, "/cwd/data");
  EXPECT_EQ(mount->target, "/mnt/data");
  EXPECT_EQ(ParseVolume("/x:y:/b", "/cwd")->source, "/x:y");
  EXPECT_FALSE(ParseVolume("data:/mnt/data", "")) << "it must not become /data";
  EXPECT_TRUE(ParseVolume("/data:/mnt/data", ""));
}

TEST(ParseVolume, RefusesAMissingSide) {
  for (const std::string_view text : {"", "/a", "/a:", ":/b", ":rw", "/a:rw"}) {
    EXPECT_FALSE(ParseVolume(text, "/cwd")) << text;
  }
}

}  // namespace
}  // namespace palmshed::cli
