#include "cli/commands/run_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "palmshed/error.h"
#include "palmshed/options.h"
#include "palmshed/units.h"

namespace palmshed::cli {
namespace {

using testing::ElementsAre;

Result<RunRequest> Make(const RunFlags& flags, std::vector<std::string> program = {"prog"}) {
  return MakeRunRequest(
      flags, std::move(program),
      {.look_up = [](const std::string&) { return std::nullopt; }, .directory = "/cwd"});
}

TEST(MakeRunRequest, AsksForNothingByDefault) {
  const auto request = Make({});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->sandbox.network, Network::kDisabled);
  EXPECT_EQ(request->sandbox.timeout, std::nullopt);
  EXPECT_EQ(request->sandbox.os_filesystem_isolation, std::nullopt);
  EXPECT_EQ(request->exec.tty.has_value(), false);
  EXPECT_FALSE(request->exec.stdin_pipe);
  EXPECT_THAT(request->program, ElementsAre("prog"));
}

TEST(MakeRunRequest, PassesEveryLimitOn) {
  const auto request = Make({.timeout = "2s",
                             .cpu_time = "500ms",
                             .memory = "64m",
                             .cpus = "0.5",
                             .pids_limit = "7",
                             .disk = "1g",
                             .storage = "memory",
                             .max_output = "4k"});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->sandbox.timeout, Millis(2000));
  EXPECT_EQ(request->sandbox.cpu_time_limit, Millis(500));
  EXPECT_EQ(request->sandbox.memory, Bytes{64U << 20});
  EXPECT_EQ(request->sandbox.cpu_quota, 0.5);
  EXPECT_EQ(request->sandbox.pids, 7U);
  EXPECT_EQ(request->sandbox.disk_quota, Bytes{1U << 30});
  EXPECT_EQ(request->sandbox.storage, Storage::kMemory);
  EXPECT_EQ(request->sandbox.max_output, Bytes{4096});
  EXPECT_EQ(Make({.storage = "loop"})->sandbox.storage, Storage::kLoop);
  EXPECT_EQ(Make({.storage = "disk"})->sandbox.storage, Storage::kDisk);
  EXPECT_EQ(Make({})->sandbox.storage, Storage::kDisk);
}

TEST(MakeRunRequest, PassesIsolationOn) {
  const auto request = Make({.volume = {"data:/mnt:rw"},
                             .degraded = {"memory,cpuQuota", "pids"},
                             .network = "allow",
                             .osfs = "off",
                             .name = "job",
                             .interactive = true});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->sandbox.network, Network::kAllow);
  EXPECT_EQ(request->sandbox.os_filesystem_isolation, false);
  EXPECT_THAT(request->sandbox.degraded, ElementsAre("memory", "cpuQuota", "pids"));
  EXPECT_EQ(request->sandbox.name, "job");
  ASSERT_EQ(request->sandbox.mounts.size(), 1U);
  EXPECT_EQ(request->sandbox.mounts[0].source, "/cwd/data");
  EXPECT_FALSE(request->exec.tty);
  EXPECT_FALSE(request->raw_terminal);
  EXPECT_TRUE(request->exec.stdin_pipe);
}

TEST(MakeRunRequest, NamesTheFlagAtFault) {
  const std::pair<RunFlags, std::string> cases[]{{{.env = {"=x"}}, "--env"},
                                                 {{.copy = {"a:"}}, "--copy"},
                                                 {{.volume = {"a"}}, "--volume"},
                                                 {{.network = "maybe"}, "--network"},
                                                 {{.timeout = "5"}, "--timeout"},
                                                 {{.timeout = ""}, "--timeout"},
                                                 {{.cpu_time = "x"}, "--cpu-time"},
                                                 {{.memory = "64q"}, "--memory"},
                                                 {{.cpus = "many"}, "--cpus"},
                                                 {{.pids_limit = "-1"}, "--pids-limit"},
                                                 {{.disk = "big"}, "--disk"},
                                                 {{.storage = "tape"}, "--storage"},
                                                 {{.max_output = "1.x"}, "--max-output"},
                                                 {{.osfs = "maybe"}, "--osfs"},
                                                 {{.json = "-"}, "--json"},
                                                 {{.json = ""}, "--json"}};
  for (const auto& [flags, field] : cases) {
    const auto request = Make(flags);
    ASSERT_FALSE(request) << field;
    EXPECT_EQ(request.error().code, ErrorCode::kInvalidOptions);
    EXPECT_EQ(request.error().field, field);
  }
}

TEST(MakeRunRequest, NeedsAProgram) {
  const auto request = Make({}, {});
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().field, "PROGRAM");
}

TEST(MakeRunRequest, TerminalIsLikeOurs) {
  Surroundings ours{.look_up = [](const std::string& name) -> std::optional<std::string> {
                      return name == "TERM" ? "screen" : "other";
                    },
                    .directory = "/cwd",
                    .input_is_terminal = true,
                    .terminal = TerminalSize{.rows = 50, .columns = 132}};
  const auto both = MakeRunRequest({.interactive = true, .tty = true}, {"prog"}, ours);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->exec.tty->rows, 50);
  EXPECT_EQ(both->exec.tty->columns, 132);
  EXPECT_TRUE(both->raw_terminal);
  EXPECT_THAT(both->exec.env, ElementsAre(testing::Pair("TERM", "screen")));
  const auto own = MakeRunRequest({.env = {"TERM=dumb"}, .tty = true}, {"prog"}, ours);
  EXPECT_FALSE(own->raw_terminal);
  EXPECT_THAT(own->exec.env, ElementsAre(testing::Pair("TERM", "dumb")));
}

TEST(MakeRunRequest, TerminalWithoutOneOfOurs) {
  const auto silent = Make({.tty = true});
  ASSERT_TRUE(silent);
  EXPECT_EQ(silent->exec.tty->rows, 24);
  EXPECT_EQ(silent->exec.tty->columns, 80);
  EXPECT_TRUE(silent->exec.env.empty());
  const auto refused = Make({.interactive = true, .tty = true});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidOptions);
  EXPECT_EQ(refused.error().field, "--tty");
}

}  // namespace
}  // namespace palmshed::cli
