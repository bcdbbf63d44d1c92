#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "palmshed/error.h"
#include "palmshed/json.h"
#include "palmshed/options.h"
#include "palmshed/units.h"

namespace palmshed {
namespace {

using namespace std::chrono_literals;
using namespace palmshed::literals;

TEST(ParseSandboxOptions, ReadsEveryField) {
  const Result<SandboxOptions> options = ParseSandboxOptions(R"({
    "backend": "native", "cpu": 2, "cpuQuota": 0.5, "cpuTimeLimit": 2000, "memory": "512MB",
    "diskQuota": 1048576, "timeout": 30000, "network": "proxy", "workDir": "src",
    "env": {"B": "2", "A": ""}, "osFilesystemIsolation": false, "image": "debian:12", "pids": 64,
    "maxOutputBytes": "1MiB", "mounts": [{"source": "/srv/data", "target": "/data"},
    {"source": "/srv/out", "target": "/out", "readOnly": false}], "networkAllow": ["*.example.org"],
    "proxyUrl": "http://proxy:3128", "degraded": ["memory", "hostLoopback"], "name": "build",
    "labels": {"team": "ci"}, "idleTimeout": 60000, "maxLifetime": 3600000, "storage": "memory"})");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->backend, "native");
  EXPECT_EQ(options->cpu, 2.0);
  EXPECT_EQ(options->cpu_quota, 0.5);
  EXPECT_EQ(options->cpu_time_limit, 2000ms);
  EXPECT_EQ(options->memory, 512_MiB);
  EXPECT_EQ(options->disk_quota, 1_MiB);
  EXPECT_EQ(options->timeout, 30000ms);
  EXPECT_EQ(options->network, Network::kProxy);
  EXPECT_EQ(options->work_dir, "src");
  EXPECT_EQ(options->env, (Env{{"B", "2"}, {"A", ""}}));
  EXPECT_EQ(options->os_filesystem_isolation, false);
  EXPECT_EQ(options->image, "debian:12");
  EXPECT_EQ(options->pids, 64U);
  EXPECT_EQ(options->max_output, 1_MiB);
  ASSERT_EQ(options->mounts.size(), 2U);
  EXPECT_TRUE(options->mounts[0].read_only);
  EXPECT_EQ(options->mounts[1].source, "/srv/out");
  EXPECT_EQ(options->mounts[1].target, "/out");
  EXPECT_FALSE(options->mounts[1].read_only);
  EXPECT_EQ(options->network_allow, std::vector<std::string>{"*.example.org"});
  EXPECT_EQ(options->proxy_url, "http://proxy:3128");
  EXPECT_EQ(options->degraded, (std::vector<std::string>{"memory", "hostLoopback"}));
  EXPECT_EQ(options->name, "build");
  EXPECT_EQ(options->labels.size(), 1U);
  EXPECT_EQ(options->idle_timeout, 60000ms);
  EXPECT_EQ(options->max_lifetime, 3600000ms);
  EXPECT_EQ(options->storage, Storage::kMemory);
}

TEST(ParseSandboxOptions, AnEmptyDocumentIsTheDefaults) {
  const Result<SandboxOptions> options = ParseSandboxOptions("{}");
  ASSERT_TRUE(options);
  EXPECT_EQ(options->backend, "native");
  EXPECT_EQ(options->network, Network::kDisabled);
  EXPECT_EQ(options->timeout, std::nullopt);
  EXPECT_EQ(options->os_filesystem_isolation, std::nullopt);
}

TEST(ParseSandboxOptions, ErrorsNameTheWholePath) {
  const struct {
    std::string_view json;
    std::string_view field;
    std::string_view message;
  } cases[] = {
      {"[]", "the document", "the document must be an object, not an array"},
      {R"({"memry": 1})", "memry", "memry is not a field of this request"},
      {R"({"memory": true})", "memory",
       "memory must be a number of bytes or a size such as \"64MB\""},
      {R"({"memory": "512"})", "memory",
       "memory must be a number followed by B, KB, MB, GB or TB (such as \"64MB\")"},
      {R"({"memory": -1})", "memory", "memory must not be negative"},
      {R"({"memory": null})", "memory",
       "memory must be a number of bytes or a size such as \"64MB\""},
      {R"({"timeout": null})", "timeout", "timeout must be a number, not null"},
      {R"({"timeout": "5"})", "timeout", "timeout must be a number, not a string"},
      {R"({"timeout": 1, "timeout": 2})", "timeout", "timeout is given twice"},
      {R"({"env": {"A": "1", "B": "2", "A": "3"}})", "env.A", "env.A is given twice"},
      {R"({"env": {"A": 1}})", "env.A", "env.A must be a string, not a number"},
      {R"({"network": "off"})", "network", R"(network must be "disabled", "allow" or "proxy")"},
      {R"({"mounts": [{"source": "/a", "target": "/b"}, {"source": "/a", "target": "b"}]})",
       "mounts[1].target", "mounts[1].target must be absolute"},
      {R"({"mounts": [{"source": "/a", "target": "/b", "mode": "rw"}]})", "mounts[0].mode", ""},
      {R"({"mounts": [{"source": "/a", "target": "/b", "readOnly": 1}]})", "mounts[0].readOnly",
       "mounts[0].readOnly must be a boolean, not a number"},
      {R"({"mounts": [7]})", "mounts[0]", "mounts[0] must be an object, not a number"},
      {R"({"networkAllow": ["a", 1]})", "networkAllow[1]",
       "networkAllow[1] must be a string, not a number"},
      {R"({"labels": {"a": {}}})", "labels.a", "labels.a must be a string, not an object"},
      {R"({"workDir": "a\u0000b"})", "workDir", "workDir must not contain a NUL byte"},
      {R"({"cpuQuota": 0.05})", "cpuQuota", ""},
      {R"({"degraded": ["everything"]})", "degraded[0]", ""},
  };
  for (const auto& [json, field, message] : cases) {
    const Result<SandboxOptions> options = ParseSandboxOptions(json);
    ASSERT_FALSE(options) << json;
    EXPECT_EQ(options.error().code, ErrorCode::kInvalidOptions) << json;
    EXPECT_EQ(options.error().field, field) << json;
    if (!message.empty()) {
      EXPECT_EQ(options.error().message, message);
    }
  }
}

// Every time, size and count with the values that programs get wrong.
TEST(ParseSandboxOptions, AwkwardNumbersAreExactOrRefused) {  // C053
  const std::string_view refused[] = {"-1",
                                      "0.5",
                                      "9007199254740993",
                                      "9223372036854775808",
                                      "1e308",
                                      "1e400",
                                      "-1e308",
                                      "\"5\"",
                                      "null",
                                      "true",
                                      "[]"};
  const std::string_view accepted[] = {
      "0", "1", "1e3", "2147483647", "2147483648", "4294967296", "9007199254740992"};
  for (const std::string field : {"timeout", "cpuTimeLimit", "idleTimeout", "maxLifetime", "pids",
                                  "memory", "diskQuota", "maxOutputBytes"}) {
    for (const std::string_view value : refused) {
      const auto options = ParseSandboxOptions("{\"" + field + "\":" + std::string(value) + "}");
      ASSERT_FALSE(options) << field << ": " << value;
      EXPECT_EQ(options.error().field, field);
    }
    for (const std::string_view value : accepted) {
      EXPECT_TRUE(ParseSandboxOptions("{\"" + field + "\":" + std::string(value) + "}"))
          << field << ": " << value;
    }
  }
  EXPECT_EQ(ParseSandboxOptions(R"({"timeout": 4294967296})")->timeout, Millis(4294967296));
}

TEST(ParseSandboxOptions, CoresAreZeroOrAtLeastATenth) {  // C053
  for (const std::string_view value :
       {"-1", "-0.5", "0.05", "0.0999999", "1e-400", "1e308", "1e400", "\"1\"", "null"}) {
    for (const std::string field : {"cpu", "cpuQuota"}) {
      const auto options = ParseSandboxOptions("{\"" + field + "\":" + std::string(value) + "}");
      ASSERT_FALSE(options) << field << ": " << value;
      EXPECT_EQ(options.error().field, field);
    }
  }
  EXPECT_EQ(ParseSandboxOptions(R"({"cpuQuota": 0})")->cpu_quota, 0.0);
  EXPECT_EQ(ParseSandboxOptions(R"({"cpuQuota": 0.1})")->cpu_quota, 0.1);
}

}  // namespace
}  // namespace palmshed
