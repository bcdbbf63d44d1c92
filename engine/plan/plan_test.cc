#include "plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "palmshed/error.h"
#include "palmshed/json.h"
#include "palmshed/options.h"
#include "palmshed/units.h"

namespace palmshed::plan {
namespace {

using namespace std::chrono_literals;
using namespace palmshed::literals;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

// A host that offers everything that a backend can offer today.
Offer FullOffer() {
  return Offer{.backend = "native",
               .private_view = true,
               .network_disabled = true,
               .scopes = true,
               .groups_dropped = true,
               .fresh_proc = true,
               .terminals = true,
               .search_path = {"/usr/bin", "/bin"},
               .usable_cpus = 2};
}

template <class T>
void ExpectRefused(const Result<T>& result, ErrorCode code, std::string_view field) {
  ASSERT_FALSE(result) << field;
  EXPECT_EQ(result.error().code, code) << result.error().message;
  EXPECT_EQ(result.error().field, field) << result.error().message;
}

SandboxPlan PlanFor(const SandboxOptions& options) {
  const Result<SandboxPlan> plan = PlanSandbox(options, FullOffer());
  EXPECT_TRUE(plan) << plan.error().message;
  return plan.value_or(SandboxPlan{});
}

Result<ExecPlan> PlanTrue(const ExecOptions& options, const SandboxPlan& sandbox) {
  return PlanExec(ExecRequest{.args = {"true"}, .options = options}, sandbox);
}

TEST(PlanSandbox, DefaultsAreTheContracts) {
  const SandboxPlan plan = PlanFor({});
  EXPECT_EQ(plan.backend, "native");
  EXPECT_EQ(plan.network, Network::kDisabled);
  EXPECT_TRUE(plan.private_view);
  EXPECT_FALSE(plan.filtered_view);
  EXPECT_TRUE(plan.proc);
  EXPECT_EQ(plan.timeout, 0ms);
  EXPECT_EQ(plan.max_output, 16_MiB);
  EXPECT_THAT(plan.weaker, IsEmpty());
  EXPECT_THAT(plan.env, Contains(testing::Pair("HOME", "/workspace")));
}

TEST(PlanSandbox, KeepsWhatTheCallerGave) {
  const SandboxPlan plan = PlanFor({.timeout = 5s,
                                    .work_dir = "src",
                                    .env = {{"HOME", "/tmp"}, {"X", "1"}},
                                    .max_output = 1_KiB,
                                    .name = "n",
                                    .labels = {{"a", "b"}}});
  EXPECT_EQ(plan.timeout, 5s);
  EXPECT_EQ(plan.max_output, 1_KiB);
  EXPECT_EQ(plan.work_dir, "src");
  EXPECT_EQ(plan.name, "n");
  EXPECT_EQ(plan.labels.size(), 1U);
  EXPECT_THAT(plan.env, Contains(testing::Pair("HOME", "/tmp")));
  EXPECT_THAT(plan.env, Contains(testing::Pair("X", "1")));
}

TEST(PlanSandbox, RefusesInvalidOptionsFirst) {
  ExpectRefused(PlanSandbox({.timeout = -1ms}, Offer{}), ErrorCode::kInvalidOptions, "timeout");
}

TEST(PlanSandbox, RefusesAnEnvironmentThatNoProgramCouldGet) {  // C057
  const SandboxOptions options{.env = {{"A", std::string(131072, 'a')}}};
  ExpectRefused(PlanSandbox(options, FullOffer()), ErrorCode::kInvalidOptions, "env.A");
}

TEST(PlanSandbox, ImagesNeedABackendThatHasThem) {
  Offer offer = FullOffer();
  ExpectRefused(PlanSandbox({.image = "debian"}, offer), ErrorCode::kInvalidOptions, "image");
  offer.images = true;
  EXPECT_TRUE(PlanSandbox({.image = "debian"}, offer));
}

TEST(PlanSandbox, TheFileViewFailsClosed) {  // C006
  Offer offer = FullOffer();
  offer.private_view = false;
  offer.private_view_missing = {.reason = "no user namespaces", .remedy = "sysctl -w x=1"};
  // Who opts out of the view needs the namespaces that are missing all the same.
  for (const std::optional<bool> wanted :
       {std::optional<bool>(), std::optional(true), std::optional(false)}) {
    const auto refused = PlanSandbox({.os_filesystem_isolation = wanted}, offer);
    ExpectRefused(refused, ErrorCode::kUnsupported, "osFilesystemIsolation");
    EXPECT_THAT(refused.error().message, HasSubstr("no user namespaces"));
    EXPECT_EQ(refused.error().remedy, "sysctl -w x=1");
  }
  offer.private_view_missing = {};
  const auto opted_out = PlanSandbox({.os_filesystem_isolation = false}, offer);
  ASSERT_TRUE(opted_out);
  EXPECT_FALSE(opted_out->private_view);
  EXPECT_FALSE(opted_out->filtered_view);
  offer.filtered_view = true;
  offer.fresh_proc = false;  // The filtered view has no /proc, so that none is needed.
  offer.workspace = "/state/sbx/workspace";
  const auto filtered = PlanSandbox({}, offer);
  ASSERT_TRUE(filtered);
  EXPECT_EQ(PlanTrue({}, *filtered)->workspace, "/state/sbx/workspace");
  EXPECT_FALSE(filtered->private_view);
  EXPECT_TRUE(filtered->filtered_view);
  EXPECT_FALSE(filtered->proc);
}

TEST(PlanSandbox, OptingOutWorksWhereTheViewIsOffered) {
  const SandboxPlan plan = PlanFor({.os_filesystem_isolation = false});
  EXPECT_FALSE(plan.private_view);
  EXPECT_TRUE(PlanFor({.os_filesystem_isolation = true}).private_view);
}

TEST(PlanSandbox, ProcNeedsAFreshMountOrAConcession) {  // C037
  Offer offer = FullOffer();
  offer.fresh_proc = false;
  offer.proc_missing = {.reason = "masked /proc", .remedy = "systempaths=unconfined"};
  const auto refused = PlanSandbox({}, offer);
  ExpectRefused(refused, ErrorCode::kUnsupported, "proc");
  EXPECT_EQ(refused.error().remedy, "systempaths=unconfined");
  const auto conceded = PlanSandbox({.degraded = {"proc"}}, offer);
  ASSERT_TRUE(conceded);
  EXPECT_FALSE(conceded->proc);
  EXPECT_THAT(conceded->weaker, ElementsAre("proc"));
  EXPECT_THAT(PlanFor({.degraded = {"proc"}}).weaker, IsEmpty());
  EXPECT_TRUE(PlanFor({.degraded = {"proc"}}).proc);
}

TEST(PlanSandbox, NetworkDisabledHasToBeOffered) {  // C006
  Offer offer = FullOffer();
  offer.network_disabled = false;
  offer.network_missing = {.reason = "no network namespaces", .remedy = "allow them"};
  ExpectRefused(PlanSandbox({}, offer), ErrorCode::kUnsupported, "network");
  EXPECT_TRUE(PlanSandbox({.network = Network::kAllow}, offer));
}

TEST(PlanSandbox, NetworkAllowNeedsTheHostsLoopbackGuarded) {  // C028
  Offer offer = FullOffer();
  offer.scopes = false;
  const SandboxOptions allow{.network = Network::kAllow};
  ExpectRefused(PlanSandbox(allow, offer), ErrorCode::kUnsupported, "network");
  const auto conceded =
      PlanSandbox({.network = Network::kAllow, .degraded = {"hostLoopback"}}, offer);
  ASSERT_TRUE(conceded);
  EXPECT_EQ(conceded->network, Network::kAllow);
  EXPECT_THAT(conceded->weaker, ElementsAre("hostLoopback"));
  EXPECT_THAT(PlanFor(allow).weaker, IsEmpty());
}

TEST(PlanSandbox, KeptGroupsAreOnRecordWhenConceded) {
  Offer offer = FullOffer();
  offer.groups_dropped = false;
  EXPECT_THAT(PlanSandbox({.degraded = {"groups"}}, offer)->weaker, ElementsAre("groups"));
  EXPECT_THAT(PlanSandbox({}, offer)->weaker, IsEmpty());
}

struct Limit {
  std::function<void(SandboxOptions&)> set;
  std::string_view control;
  std::string_view field;
};

const std::vector<Limit>& PendingLimitCases() {
  static const std::vector<Limit> kCases = {
      {[](auto& o) { o.memory = 64_MiB; }, "memory", "memory"},
      {[](auto& o) { o.cpu_quota = 0.5; }, "cpuQuota", "cpuQuota"},
      {[](auto& o) { o.cpu = 1.5; }, "cpuQuota", "cpu"},
      {[](auto& o) { o.pids = 16; }, "pids", "pids"},
      {[](auto& o) { o.cpu_time_limit = 1s; }, "cpuTimeLimit", "cpuTimeLimit"},
      {[](auto& o) { o.disk_quota = 1_MiB; }, "diskQuota", "diskQuota"},
  };
  return kCases;
}

TEST(PlanSandbox, LimitsThatNobodyEnforcesAreRefusedUnlessConceded) {  // C006
  for (const Limit& limit : PendingLimitCases()) {
    SandboxOptions options;
    limit.set(options);
    const auto refused = PlanSandbox(options, FullOffer());
    ExpectRefused(refused, ErrorCode::kUnsupported, limit.field);
    EXPECT_THAT(refused.error().remedy, HasSubstr(limit.control));
    options.degraded = {std::string(limit.control)};
    EXPECT_THAT(PlanFor(options).weaker, ElementsAre(limit.control));
    options.degraded = {"proc"};
    ExpectRefused(PlanSandbox(options, FullOffer()), ErrorCode::kUnsupported, limit.field);
  }
}

TEST(PlanSandbox, ZeroIsNoLimit) {  // C053
  const SandboxPlan plan = PlanFor({.cpu = 0,
                                    .cpu_quota = 0,
                                    .cpu_time_limit = 0ms,
                                    .memory = 0_B,
                                    .disk_quota = 0_B,
                                    .timeout = 0ms,
                                    .pids = 0,
                                    .max_output = 0_B,
                                    .idle_timeout = 0ms,
                                    .max_lifetime = 0ms});
  EXPECT_EQ(plan.timeout, 0ms);
  EXPECT_EQ(plan.max_output, kDefaultMaxOutput);
  EXPECT_THAT(plan.weaker, IsEmpty());
}

TEST(PlanSandbox, AQuotaOfAllCpusNeedsNothingDone) {
  EXPECT_THAT(PlanFor({.cpu = 2}).weaker, IsEmpty());
  EXPECT_THAT(PlanFor({.cpu_quota = 64}).weaker, IsEmpty());
  ExpectRefused(PlanSandbox({.cpu = 8, .cpu_quota = 1}, FullOffer()), ErrorCode::kUnsupported,
                "cpuQuota");
  Offer unknown = FullOffer();
  unknown.usable_cpus = 0;
  ExpectRefused(PlanSandbox({.cpu = 64}, unknown), ErrorCode::kUnsupported, "cpu");
}

TEST(PlanSandbox, WhatNoBackendHasIsRefusedAndNotIgnored) {
  const struct {
    std::function<void(SandboxOptions&)> set;
    std::string_view field;
  } cases[] = {
      {[](auto& o) { o.storage = Storage::kMemory; }, "storage"},
      {[](auto& o) { o.storage = Storage::kLoop; }, "storage"},
      {[](auto& o) { o.network = Network::kProxy; }, "network"},
      {[](auto& o) { o.network_allow = {"example.org"}; }, "networkAllow"},
      {[](auto& o) { o.proxy_url = "http://p"; }, "proxyUrl"},
      {[](auto& o) { o.idle_timeout = 1ms; }, "idleTimeout"},
      {[](auto& o) { o.max_lifetime = 1ms; }, "maxLifetime"},
  };
  for (const auto& [set, field] : cases) {
    SandboxOptions options;
    set(options);
    ExpectRefused(PlanSandbox(options, FullOffer()), ErrorCode::kUnsupported, field);
  }
}

TEST(PlanExec, FillsInTheSandboxsDefaults) {
  const SandboxPlan sandbox =
      PlanFor({.timeout = 2s, .work_dir = "src", .env = {{"A", "1"}}, .max_output = 1_KiB});
  const auto plan = PlanTrue({.env = {{"B", "2"}, {"PATH", "/opt"}}}, sandbox);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT(plan->argv, ElementsAre("true"));
  EXPECT_THAT(plan->paths, ElementsAre("/opt/true"));
  EXPECT_THAT(plan->env, UnorderedElementsAre("PATH=/opt", "HOME=/workspace", "TMPDIR=/tmp",
                                              "LANG=C.UTF-8", "USER=sandbox", "LOGNAME=sandbox",
                                              "SHELL=/bin/sh", "PALMSHED_SANDBOX=1", "A=1", "B=2"));
  EXPECT_EQ(plan->work_dir, "src");
  EXPECT_EQ(plan->timeout, 2s);
  EXPECT_EQ(plan->max_output, 1_KiB);
  EXPECT_EQ(plan->stdin_kind, StdinKind::kNull);
}

TEST(PlanExec, TheShellFormRunsTheShell) {
  const auto plan = PlanExec({.command = "echo hi"}, PlanFor({}));
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->argv, ElementsAre("/bin/sh", "-c", "echo hi"));
  EXPECT_THAT(plan->paths, ElementsAre("/bin/sh"));
}

TEST(PlanExec, RefusesInvalidRequests) {
  const SandboxPlan sandbox = PlanFor({});
  ExpectRefused(PlanExec({}, sandbox), ErrorCode::kInvalidOptions, "args");
  ExpectRefused(PlanExec({.args = {""}}, sandbox), ErrorCode::kInvalidOptions, "args[0]");
  ExpectRefused(PlanExec({.command = std::string(131072, 'a')}, sandbox),
                ErrorCode::kInvalidOptions, "command");
  ExpectRefused(PlanExec({.args = {"a", std::string(131072, 'a')}}, sandbox),
                ErrorCode::kInvalidOptions, "args[1]");
  ExpectRefused(PlanTrue({.env = {{"A", std::string(131070, 'a')}}}, sandbox),
                ErrorCode::kInvalidOptions, "env.A");
}

TEST(PlanExec, CeilingsAreLoweredButNeverRaised) {  // C091
  SandboxOptions options{.cpu_quota = 1,
                         .cpu_time_limit = 1s,
                         .memory = 128_MiB,
                         .timeout = 2s,
                         .pids = 16,
                         .max_output = 1_MiB};
  options.degraded = {"memory", "cpuQuota", "pids", "cpuTimeLimit"};
  const SandboxPlan sandbox = PlanFor(options);
  const struct {
    ExecOptions raised;
    std::string_view field;
    std::string_view message;
  } cases[] = {
      {{.timeout = 60s}, "timeout", "timeout of 60000 ms is more than the sandbox allows: 2000 ms"},
      {{.cpu_time_limit = 1001ms}, "cpuTimeLimit", ""},
      {{.cpu_quota = 1.5},
       "cpuQuota",
       "cpuQuota of 1.5 cores is more than the sandbox allows: 1 cores"},
      {{.memory = 4_GiB},
       "memory",
       "memory of 4294967296 bytes is more than the sandbox allows: 134217728 bytes"},
      {{.pids = 1000},
       "pids",
       "pids of 1000 processes is more than the sandbox allows: 16 processes"},
      {{.max_output = 1_GiB}, "maxOutputBytes", ""},
  };
  for (const auto& [raised, field, message] : cases) {
    const auto plan = PlanTrue(raised, sandbox);
    ExpectRefused(plan, ErrorCode::kInvalidOptions, field);
    EXPECT_THAT(plan.error().message, HasSubstr(message));
  }
  const auto lowered = PlanTrue(
      {.timeout = 1s, .cpu_quota = 0.5, .memory = 1_MiB, .pids = 1, .max_output = 1_KiB}, sandbox);
  ASSERT_TRUE(lowered);
  EXPECT_EQ(lowered->timeout, 1s);
  EXPECT_EQ(lowered->max_output, 1_KiB);
  const auto zero = PlanTrue({.timeout = 0ms, .memory = 0_B, .max_output = 0_B}, sandbox);
  ASSERT_TRUE(zero);
  EXPECT_EQ(zero->timeout, 2s);
  EXPECT_EQ(zero->max_output, 1_MiB);
}

TEST(PlanExec, TheDefaultRetentionIsACeilingToo) {  // C091
  const SandboxPlan sandbox = PlanFor({});
  EXPECT_TRUE(PlanTrue({.max_output = 16_MiB}, sandbox));
  ExpectRefused(PlanTrue({.max_output = 1_GiB}, sandbox), ErrorCode::kInvalidOptions,
                "maxOutputBytes");
}

TEST(PlanExec, AnUnlimitedSandboxLeavesTheLimitToTheExecution) {
  EXPECT_EQ(PlanTrue({.timeout = 1ms}, PlanFor({}))->timeout, 1ms);
}

TEST(PlanExec, LimitsThatNobodyEnforcesAreRefusedUnlessConceded) {  // C006
  const struct {
    ExecOptions options;
    std::string control;
  } cases[] = {{{.memory = 1_MiB}, "memory"},
               {{.cpu_quota = 0.5}, "cpuQuota"},
               {{.pids = 4}, "pids"},
               {{.cpu_time_limit = 1s}, "cpuTimeLimit"}};
  for (const auto& [options, control] : cases) {
    ExpectRefused(PlanTrue(options, PlanFor({})), ErrorCode::kUnsupported, control);
    const auto conceded = PlanTrue(options, PlanFor({.degraded = {control}}));
    ASSERT_TRUE(conceded) << conceded.error().message;
    EXPECT_THAT(conceded->weaker, ElementsAre(control));
  }
  EXPECT_THAT(PlanTrue({.cpu_quota = 2}, PlanFor({}))->weaker, IsEmpty());
}

TEST(PlanSandbox, MountsTakeAViewOfTheSandboxsOwnAndNoGroups) {
  const std::vector<Mount> mounts{{.source = "/srv", .target = "/data"}};
  EXPECT_EQ(PlanFor({.mounts = mounts}).mounts.size(), 1U);
  ExpectRefused(PlanSandbox({.os_filesystem_isolation = false, .mounts = mounts}, FullOffer()),
                ErrorCode::kUnsupported, "mounts");
  Offer kept = FullOffer();
  kept.groups_dropped = false;
  const auto refused = PlanSandbox({.mounts = mounts}, kept);
  ExpectRefused(refused, ErrorCode::kUnsupported, "mounts");
  EXPECT_NE(refused.error().remedy, "");
  const auto conceded = PlanSandbox({.mounts = mounts, .degraded = {"groups"}}, kept);
  ASSERT_TRUE(conceded);
  EXPECT_THAT(conceded->weaker, ElementsAre("groups"));
  EXPECT_TRUE(PlanSandbox({}, kept));  // They do no harm without.
  Offer filtered = FullOffer();
  filtered.private_view = false;
  filtered.filtered_view = true;
  filtered.private_view_missing = {.reason = "no user namespaces", .remedy = "sysctl -w x=1"};
  const auto unseen = PlanSandbox({.mounts = mounts}, filtered);
  ExpectRefused(unseen, ErrorCode::kUnsupported, "mounts");
  EXPECT_THAT(unseen.error().message, HasSubstr("no user namespaces"));
  EXPECT_EQ(unseen.error().remedy, "sysctl -w x=1");
}

TEST(PlanExec, TerminalTakesThePlaceOfTheStreams) {
  const SandboxPlan sandbox = PlanFor({});
  const auto silent = PlanTrue({.tty = TerminalSize{.rows = 7, .columns = 9}}, sandbox);
  ASSERT_TRUE(silent);
  EXPECT_EQ(silent->terminal->rows, 7);
  EXPECT_EQ(silent->terminal->columns, 9);
  EXPECT_EQ(silent->stdin_kind, StdinKind::kNull);
  EXPECT_TRUE(silent->close_stdin);
  EXPECT_THAT(silent->env, Contains("TERM=xterm-256color"));
  EXPECT_TRUE(PlanTrue({.stdin_bytes = "x", .tty = TerminalSize{}}, sandbox)->close_stdin);
  const auto open =
      PlanTrue({.env = {{"TERM", "vt100"}}, .stdin_pipe = true, .tty = TerminalSize{}}, sandbox);
  EXPECT_FALSE(open->close_stdin);
  EXPECT_EQ(open->stdin_kind, StdinKind::kNull);
  EXPECT_THAT(open->env, Contains("TERM=vt100"));
  EXPECT_THAT(open->env, Not(Contains("TERM=xterm-256color")));
  const auto plain = PlanTrue({}, sandbox);
  EXPECT_FALSE(plain->terminal);
  EXPECT_THAT(plain->env, Not(Contains(testing::StartsWith("TERM="))));
}

TEST(PlanExec, TerminalIsRefusedWhereThereIsNone) {
  Offer offer = FullOffer();
  offer.terminals = false;
  offer.terminals_missing = {.reason = "no devpts", .remedy = "get one"};
  const auto sandbox = PlanSandbox({}, offer);
  ASSERT_TRUE(sandbox);
  const auto refused = PlanTrue({.tty = TerminalSize{}}, *sandbox);
  ExpectRefused(refused, ErrorCode::kUnsupported, "tty");
  EXPECT_EQ(refused.error().remedy, "get one");
  EXPECT_TRUE(PlanTrue({}, *sandbox));
}

TEST(PlanExec, StdinIsNullFedOrLeftOpen) {  // C013
  const SandboxPlan sandbox = PlanFor({});
  const auto fed = PlanTrue({.stdin_bytes = "x"}, sandbox);
  EXPECT_EQ(fed->stdin_kind, StdinKind::kPipe);
  EXPECT_TRUE(fed->close_stdin);
  const auto open = PlanTrue({.stdin_bytes = "x", .stdin_pipe = true}, sandbox);
  EXPECT_EQ(open->stdin_kind, StdinKind::kPipe);
  EXPECT_FALSE(open->close_stdin);
  const auto null_device = PlanTrue({}, sandbox);
  EXPECT_EQ(null_device->stdin_kind, StdinKind::kNull);
  EXPECT_FALSE(null_device->close_stdin);
}

}  // namespace
}  // namespace palmshed::plan
