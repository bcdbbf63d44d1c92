// What only a C++ caller can get wrong; what documents can is tested with the parsers.
#include "model/validate.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "model/quantities.h"
#include "palmshed/error.h"
#include "palmshed/json.h"
#include "palmshed/options.h"
#include "palmshed/units.h"

namespace palmshed::model {
namespace {

using std::string_literals::operator""s;

void ExpectField(const Result<void>& result, std::string_view field) {
  ASSERT_FALSE(result) << field;
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidOptions);
  EXPECT_EQ(result.error().field, field) << result.error().message;
}

TEST(Validate, AcceptsDefaultsAndBounds) {
  EXPECT_TRUE(Validate(SandboxOptions{}));
  EXPECT_TRUE(Validate(SandboxOptions{.cpu_quota = 0.1,
                                      .memory = Bytes{kMaxInteger},
                                      .timeout = Millis(kMaxInteger),
                                      .work_dir = "a/../b",
                                      .mounts = {{.source = "/", .target = "/workspaces"}}}));
  EXPECT_TRUE(Validate(ExecRequest{.args = {"a", ""}}));
}

TEST(Validate, RefusesWrongSandboxOptions) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const struct {
    std::function<void(SandboxOptions&)> set;
    std::string_view field;
  } cases[] = {
      {[](auto& o) { o.backend = ""; }, "backend"},
      {[&](auto& o) { o.cpu_quota = nan; }, "cpuQuota"},
      {[&](auto& o) { o.cpu = infinity; }, "cpu"},
      {[&](auto& o) { o.cpu = -infinity; }, "cpu"},
      {[](auto& o) { o.timeout = Millis(-1); }, "timeout"},
      {[](auto& o) { o.timeout = Millis::max(); }, "timeout"},
      {[](auto& o) { o.timeout = Millis::min(); }, "timeout"},
      {[](auto& o) { o.cpu_time_limit = Millis(-5); }, "cpuTimeLimit"},
      {[](auto& o) { o.idle_timeout = Millis(-5); }, "idleTimeout"},
      {[](auto& o) { o.max_lifetime = Millis(-5); }, "maxLifetime"},
      {[](auto& o) { o.memory = Bytes{kMaxInteger + 1}; }, "memory"},
      {[](auto& o) { o.disk_quota = Bytes{~0ULL}; }, "diskQuota"},
      {[](auto& o) { o.max_output = Bytes{~0ULL}; }, "maxOutputBytes"},
      {[](auto& o) { o.pids = ~0ULL; }, "pids"},
      {[](auto& o) { o.network = static_cast<Network>(9); }, "network"},
      {[](auto& o) { o.storage = static_cast<Storage>(9); }, "storage"},
      {[](auto& o) { o.work_dir = "/abs"; }, "workDir"},
      {[](auto& o) { o.work_dir = "a\0b"s; }, "workDir"},
      {[](auto& o) { o.work_dir = std::string(4096, 'a'); }, "workDir"},
      {[](auto& o) { o.env = {{"", "x"}}; }, "env"},
      {[](auto& o) { o.env = {{"A=", "x"}}; }, "env.A="},
      {[](auto& o) { o.env = {{"A\0"s, "x"}}; }, "env.A?"},
      {[](auto& o) { o.env = {{"A", "\0"s}}; }, "env.A"},
      {[](auto& o) { o.image = "a\0"s; }, "image"},
      {[](auto& o) { o.name = std::string(256, 'n'); }, "name"},
      {[](auto& o) { o.labels = {{"", "x"}}; }, "labels"},
      {[](auto& o) { o.labels = {{"a", "\0"s}}; }, "labels.a"},
      {[](auto& o) { o.labels.resize(257, {"a", "b"}); }, "labels"},
      {[](auto& o) { o.network_allow = {""}; }, "networkAllow[0]"},
      {[](auto& o) { o.network_allow.resize(1025, "a"); }, "networkAllow"},
      {[](auto& o) { o.proxy_url = "\0"s; }, "proxyUrl"},
      {[](auto& o) { o.degraded = {"memory", "Memory"}; }, "degraded[1]"},
      {[](auto& o) { o.mounts.resize(65, {.source = "/a", .target = "/b"}); }, "mounts"},
  };
  for (const auto& [set, field] : cases) {
    SandboxOptions options;
    set(options);
    ExpectField(Validate(options), field);
  }
}

TEST(Validate, MountTargetsArePlainAndKeepOffReservedTrees) {
  const auto mount = [](std::string source, std::string target) {
    return Validate(SandboxOptions{.mounts = {{std::move(source), std::move(target)}}});
  };
  EXPECT_TRUE(mount("/srv", "/data/set"));
  EXPECT_TRUE(mount("/srv", "/devices"));
  ExpectField(mount("srv", "/data"), "mounts[0].source");
  ExpectField(mount("", "/data"), "mounts[0].source");
  ExpectField(mount("/a\0"s, "/data"), "mounts[0].source");
  for (const std::string target : {"", "data", "/", "//data", "/data/", "/a/../proc", "/a/.", "/..",
                                   "/workspace", "/workspace/x", "/proc", "/dev/shm", "/sys/fs"}) {
    ExpectField(mount("/srv", target), "mounts[0].target");
  }
}

TEST(Validate, RefusesWrongExecRequests) {
  const struct {
    std::function<void(ExecRequest&)> set;
    std::string_view field;
  } cases[] = {
      {[](auto& r) { r.args = {}; }, "args"},
      {[](auto& r) { r.args = {""}; }, "args[0]"},
      {[](auto& r) { r.args = {"a", "b\0"s}; }, "args[1]"},
      {[](auto& r) { r.command = "a"; }, "command"},
      {[](auto& r) { r.options.timeout = Millis(-1); }, "timeout"},
      {[](auto& r) { r.options.cpu_time_limit = Millis(-1); }, "cpuTimeLimit"},
      {[](auto& r) { r.options.cpu_quota = 0.01; }, "cpuQuota"},
      {[](auto& r) { r.options.memory = Bytes{~0ULL}; }, "memory"},
      {[](auto& r) { r.options.pids = ~0ULL; }, "pids"},
      {[](auto& r) { r.options.max_output = Bytes{~0ULL}; }, "maxOutputBytes"},
      {[](auto& r) { r.options.work_dir = "/"; }, "workDir"},
      {[](auto& r) { r.options.env = {{"=", ""}}; }, "env.="},
      {[](auto& r) { r.options.tty = {.rows = 0, .columns = 80}; }, "tty"},
      {[](auto& r) { r.options.descendants = static_cast<Descendants>(3); }, "descendants"},
  };
  for (const auto& [set, field] : cases) {
    ExecRequest request{.args = {"true"}};
    set(request);
    ExpectField(Validate(request), field);
  }
}

}  // namespace
}  // namespace palmshed::model
