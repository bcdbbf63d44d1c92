#include "backends/native/host_mounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "palmshed/error.h"
#include "palmshed/options.h"
#include "workspace/test_tree.h"

namespace palmshed::backends::native {
namespace {

using ::testing::HasSubstr;
using workspace::AsOrdinaryUser;
using workspace::TestTree;

class HoldMountsTest : public ::testing::Test {
 protected:
  HoldMountsTest() {
    tree_.Mkdir("data");
    tree_.Write("data/file", "content");
  }
  /// Without links.
  std::string At(const std::string& name) const {
    return std::filesystem::canonical(tree_.path()) / name;
  }
  static Result<std::vector<HostMount>> HoldOne(const std::string& source,
                                                const std::vector<std::string>& own = {}) {
    return HoldMounts({{.source = source, .target = "/data"}}, own);
  }
  static void ExpectRefused(const Result<std::vector<HostMount>>& held, const std::string& why) {
    ASSERT_FALSE(held);
    EXPECT_EQ(held.error().code, ErrorCode::kInvalidOptions);
    EXPECT_EQ(held.error().field, "mounts[0].source");
    EXPECT_THAT(held.error().message, HasSubstr(why));
  }

  TestTree tree_;
};

/// For as long as it lives, nothing more can be opened.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoMoreDescriptors() { (void)::setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST_F(HoldMountsTest, SourcesAreCalledWhatTheKernelCallsThem) {
  const auto held = HoldOne(At("data") + "//./../data/");
  ASSERT_TRUE(held) << held.error().message;
  EXPECT_EQ(held->front().mount.source, At("data"));
  EXPECT_TRUE(held->front().directory);
  const auto file = HoldOne(At("data/file"));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_FALSE(file->front().directory);
}

TEST_F(HoldMountsTest, WhatIsPrivateIsNeitherShownNorWhatHoldsItNorWhatItHolds) {
  const std::string own = At("data/own");
  tree_.Mkdir("data/own");
  tree_.Mkdir("data/own/below");
  tree_.Mkdir("data/own-not");
  for (const char* const name : {"data", "data/own", "data/own/below", "data/./own//below/.."}) {
    ExpectRefused(HoldOne(At(name), {own}), "state of the engine");
    EXPECT_TRUE(HoldOne(At(name))) << "control";
  }
  EXPECT_TRUE(HoldOne(At("data/own-not"), {own}));
  EXPECT_TRUE(HoldOne(At("data/file"), {own}));
}

TEST_F(HoldMountsTest, WhatIsWrongWithASourceIsTheCallersToChange) {
  ExpectRefused(HoldOne(At("missing")), "No such file");
  ExpectRefused(HoldOne(At("data/file/below")), "Not a directory");
  ExpectRefused(HoldOne(At(std::string(300, 'x'))), "too long");
  tree_.Link("data", "link");
  ExpectRefused(HoldOne(At("link")), "symbolic link");
  const AsOrdinaryUser user(tree_);
  tree_.Mkdir("closed");
  tree_.Mkdir("closed/below");
  EXPECT_TRUE(HoldOne(At("closed/below"))) << "control";
  ASSERT_EQ(::chmod(At("closed").c_str(), 0), 0);
  ExpectRefused(HoldOne(At("closed/below")), "Permission denied");
  ASSERT_EQ(::chmod(At("closed").c_str(), 0700), 0);
}

TEST_F(HoldMountsTest, WhatTheHostHasRunOutOfIsNoFaultOfTheOptions) {
  const std::string source = At("data");
  {
    const NoMoreDescriptors none;
    const auto held = HoldOne(source);
    ASSERT_FALSE(held);
    EXPECT_EQ(held.error().code, ErrorCode::kOverloaded);
    EXPECT_EQ(held.error().sys_errno, EMFILE);
    EXPECT_EQ(held.error().field, "");
  }
  EXPECT_TRUE(HoldOne(source)) << "control";
}

}  // namespace
}  // namespace palmshed::backends::native
