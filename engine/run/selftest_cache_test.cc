#include "run/selftest_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <expected>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "backends/backend.h"
#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/json.h"
#include "palmshed/options.h"
#include "workspace/test_tree.h"

namespace palmshed::run {
namespace {

using namespace std::chrono_literals;
using workspace::TestTree;

constexpr uid_t kSomebody = 54323;

class SelfTestCacheTest : public ::testing::Test {
 protected:
  SelfTestCacheTest() { tree_.Mkdir("state", 0700); }

  SelfTestCache Cache(std::string key = "this host") const {
    return {tree_.At("state"), std::move(key)};
  }
  std::string Name() const { return "state/" + Cache().FileName(); }
  std::string Path() const { return tree_.At(Name()); }
  void Store() const { Cache().Store(seen_, now_); }
  bool Loads() const { return Cache().Load(now_).has_value(); }
  /// What makes it untrustworthy is all there is to it: before, it is believed.
  template <class Spoil>
  void ExpectDistrusted(const char* what, const Spoil& spoil) const {
    Store();
    ASSERT_TRUE(Loads()) << "the control of " << what;
    ASSERT_EQ(spoil(), 0) << what;
    EXPECT_FALSE(Loads()) << what;
  }
  void Rewrite(std::string_view content) const { tree_.Write(Name(), content, 0600); }

  const TestTree tree_;
  const Capabilities seen_{
      .streaming = true,
      .filesystem_view = "private",
      .controls = {{.name = "networkIsolation", .works = true, .detail = "\"refused\""}}};
  const SelfTestCache::Clock::time_point now_ = SelfTestCache::Clock::now();
};

TEST_F(SelfTestCacheTest, WhatWasStoredIsFound) {
  EXPECT_FALSE(Loads()) << "nothing is there yet";
  Store();
  const auto found = Cache().Load(now_);
  ASSERT_TRUE(found);
  EXPECT_EQ(ToJson(*found), ToJson(seen_));
  EXPECT_EQ(tree_.Mode(Name()), 0600U);
  EXPECT_EQ(tree_.Names("state"), std::set<std::string>{Cache().FileName()});
}

TEST_F(SelfTestCacheTest, TheLastOneCounts) {
  Store();
  Cache().Store({.tty = true}, now_);
  const auto found = Cache().Load(now_);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->tty);
  EXPECT_FALSE(found->streaming);
}

TEST_F(SelfTestCacheTest, OnlyForTheSameKey) {
  Store();
  const std::string content = tree_.Read(Name());
  for (const std::string key : {"", "this hos", "this host ", "that host"}) {
    const SelfTestCache other = Cache(key);
    tree_.Write("state/" + other.FileName(), content, 0600);
    EXPECT_FALSE(other.Load(now_)) << key;
  }
  EXPECT_TRUE(Loads()) << "control";
}

TEST_F(SelfTestCacheTest, AsManyKeysAsThereAreFillNoDirectory) {
  for (int i = 0; i < 200; ++i) Cache(std::to_string(i)).Store(seen_, now_);
  EXPECT_GT(tree_.Names("state").size(), 4U);
  EXPECT_LE(tree_.Names("state").size(), 16U);
}

TEST_F(SelfTestCacheTest, OnlyForFiveMinutes) {
  Store();
  EXPECT_TRUE(Cache().Load(now_ + 5min - 1ms));
  EXPECT_FALSE(Cache().Load(now_ + 5min));
  EXPECT_FALSE(Cache().Load(now_ - 1s)) << "from the future";
}

TEST_F(SelfTestCacheTest, WhatDidNotWorkIsSoonTestedAgain) {
  Capabilities failed = seen_;
  failed.controls.push_back({.name = "privileges", .works = false});
  Cache().Store(failed, now_);
  EXPECT_TRUE(Cache().Load(now_ + 10s - 1ms));
  EXPECT_FALSE(Cache().Load(now_ + 10s));
}

TEST_F(SelfTestCacheTest, DocumentsThatAreNotWholeAreNothing) {
  Store();
  const std::string whole = tree_.Read(Name());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    Rewrite(whole.substr(0, size));
    ASSERT_FALSE(Loads()) << size;
  }
  Rewrite(whole + "x");
  EXPECT_FALSE(Loads());
  for (const std::string_view wrong :
       {"[]", "{}", R"({"key":"this host"})", R"({"key":"this host","time":"now"})"}) {
    Rewrite(wrong);
    EXPECT_FALSE(Loads()) << wrong;
  }
  Rewrite(whole);
  EXPECT_TRUE(Loads()) << "control";
}

TEST_F(SelfTestCacheTest, OversizeIsNothing) {
  Store();
  const std::string whole = tree_.Read(Name());
  Rewrite(whole + std::string(kMaxTestedBytes - whole.size(), ' '));
  EXPECT_TRUE(Loads()) << "control";
  Rewrite(whole + std::string(kMaxTestedBytes - whole.size() + 1, ' '));
  EXPECT_FALSE(Loads());
  ASSERT_EQ(::unlink(Path().c_str()), 0);
  Cache().Store({.crash_kill = std::string(kMaxTestedBytes, 'x')}, now_);
  EXPECT_FALSE(tree_.Has(Name())) << "and is never written";
}

TEST_F(SelfTestCacheTest, OnlyAPlainFileOfOurOwn) {
  ExpectDistrusted("a file that the group may write",
                   [this] { return ::chmod(Path().c_str(), 0620); });
  ExpectDistrusted("a file that others may write",
                   [this] { return ::chmod(Path().c_str(), 0602); });
  ExpectDistrusted("a second name",
                   [this] { return ::link(Path().c_str(), tree_.At("again").c_str()); });
  ExpectDistrusted("a link", [this] {
    return ::rename(Path().c_str(), tree_.At("moved").c_str()) +
           ::symlink(tree_.At("moved").c_str(), Path().c_str());
  });
  ExpectDistrusted("a pipe that nobody writes to",
                   [this] { return ::unlink(Path().c_str()) + ::mkfifo(Path().c_str(), 0600); });
  ExpectDistrusted("a directory",
                   [this] { return ::unlink(Path().c_str()) + ::mkdir(Path().c_str(), 0700); });
}

TEST_F(SelfTestCacheTest, OnlyInADirectoryOfOurOwn) {
  const std::string state = tree_.At("state");
  ExpectDistrusted("a directory that the group may write",
                   [&] { return ::chmod(state.c_str(), 0720); });
  ASSERT_EQ(::chmod(state.c_str(), 0702), 0);
  EXPECT_FALSE(Loads());
  ASSERT_EQ(::chmod(state.c_str(), 0755), 0);
  EXPECT_TRUE(Loads()) << "control: others may look";
  ExpectDistrusted("a link to a directory", [&] {
    return ::rename(state.c_str(), tree_.At("moved").c_str()) +
           ::symlink(tree_.At("moved").c_str(), state.c_str());
  });
}

TEST_F(SelfTestCacheTest, NothingOfSomebodyElse) {
  if (::geteuid() != 0) GTEST_SKIP() << "geteuid() is not 0";
  ExpectDistrusted("a foreign file", [this] { return ::chown(Path().c_str(), kSomebody, 0); });
  ExpectDistrusted("a foreign directory",
                   [this] { return ::chown(tree_.At("state").c_str(), kSomebody, 0); });
}

TEST_F(SelfTestCacheTest, NothingIsWrittenWhereItWouldNotBeBelieved) {
  ASSERT_EQ(::chmod(tree_.At("state").c_str(), 0770), 0);
  Store();
  EXPECT_TRUE(tree_.Names("state").empty());
  const SelfTestCache nowhere(tree_.At("nowhere"), "this host");
  nowhere.Store(seen_, now_);
  EXPECT_FALSE(tree_.Has("nowhere")) << "and no directory is made";
}

TEST_F(SelfTestCacheTest, WhoeverIsWritingIsLeftAloneUntilItIsSurelyDead) {
  const std::string unfinished = Name() + ".new";
  tree_.Write(unfinished, "half", 0600);
  Store();
  EXPECT_EQ(tree_.Read(unfinished), "half");
  EXPECT_FALSE(tree_.Has(Name()));
  const timeval long_ago[2] = {};
  ASSERT_EQ(::utimes(tree_.At(unfinished).c_str(), long_ago), 0);
  Store();
  Store();
  EXPECT_FALSE(tree_.Has(unfinished));
  EXPECT_TRUE(Loads());
}

// ---- whose self-tests are kept

class FakeBackend final : public backends::Backend {
 public:
  std::string_view name() const override { return "fake"; }
  Result<backends::PlannedSandbox> Create(const std::string&, const SandboxOptions&, const Planner&,
                                          std::function<void()>) override {
    return std::unexpected(Error{});
  }
  Result<backends::Description> Describe() override { return std::unexpected(Error{}); }
  std::span<const std::byte> ProbeProgram() const override { return {}; }
  std::optional<backends::Surroundings> Survey() override { return surroundings; }

  std::optional<backends::Surroundings> surroundings{};
};

TEST(SelfTestCacheFor, DependsOnEverythingTheBackendFinds) {
  FakeBackend backend;
  EXPECT_FALSE(SelfTestCache::For(backend)) << "the backend cannot say";
  backend.surroundings = {.facts = "a", .place = "/nowhere"};
  const auto first = SelfTestCache::For(backend);
  ASSERT_TRUE(first);
  EXPECT_EQ(first, SelfTestCache::For(backend));
  backend.surroundings->facts = "b";
  EXPECT_NE(first, SelfTestCache::For(backend));
  backend.surroundings = {.facts = "a", .place = "/elsewhere"};
  EXPECT_NE(first, SelfTestCache::For(backend));
}

}  // namespace
}  // namespace palmshed::run
