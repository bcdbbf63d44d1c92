#include "model/capabilities_reader.h"

#include <gtest/gtest.h>

#include <expected>
#include <string>
#include <string_view>

#include "model/json_value.h"
#include "model/names.h"
#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/json.h"
#include "palmshed/options.h"

namespace palmshed::model {
namespace {

Result<Capabilities> Read(std::string_view json) {
  const auto value = ParseJson(json);
  if (!value) return std::unexpected(value.error());
  return ReadCapabilities(*value, "");
}

/// What is read of a printed document prints as it.
void ExpectRoundTrip(const Capabilities& capabilities) {
  const std::string printed = ToJson(capabilities);
  const auto read = Read(printed);
  ASSERT_TRUE(read) << read.error().message << "\n" << printed;
  EXPECT_EQ(ToJson(*read), printed);
}

/// With a member that has another value than it has by itself; a document that lost it is seen.
void ExpectKept(bool Capabilities::* flag) {
  Capabilities capabilities;
  capabilities.*flag = true;
  EXPECT_NE(ToJson(capabilities), ToJson(Capabilities{}));
  ExpectRoundTrip(capabilities);
}

void ExpectKept(std::string Capabilities::* text) {
  Capabilities capabilities;
  capabilities.*text = "a \"word\"\n\xC3\xA9";
  EXPECT_NE(ToJson(capabilities), ToJson(Capabilities{}));
  ExpectRoundTrip(capabilities);
}

TEST(CapabilitiesReader, EveryFlagComesBackInItsPlace) {
  for (const auto flag :
       {&Capabilities::filesystem, &Capabilities::network_isolation, &Capabilities::cpu_limits,
        &Capabilities::memory_limits, &Capabilities::streaming, &Capabilities::remote_execution,
        &Capabilities::cpu_quota_limits, &Capabilities::pids_limits, &Capabilities::disk_quota,
        &Capabilities::tty, &Capabilities::mounts}) {
    ExpectKept(flag);
  }
}

TEST(CapabilitiesReader, EveryTextComesBackInItsPlace) {
  for (const auto text :
       {&Capabilities::filesystem_view, &Capabilities::crash_kill, &Capabilities::host_loopback,
        &Capabilities::supplementary_groups, &Capabilities::pids_scope,
        &Capabilities::memory_enforcement, &Capabilities::cpu_time_enforcement}) {
    ExpectKept(text);
  }
}

TEST(CapabilitiesReader, EveryChoiceAndListComesBack) {
  ExpectRoundTrip({});
  for (const auto& [support, name] : Spellings<Support>()) {
    ExpectRoundTrip({.os_filesystem_isolation = support});
  }
  for (const auto& [storage, name] : Spellings<Storage>()) {
    ExpectRoundTrip({.storage = {storage, Storage::kDisk}});
  }
  ExpectRoundTrip({.controls = {{.name = "networkIsolation", .works = true},
                                {.name = "a", .mechanism = "b"},
                                {.name = "a", .detail = "c"},
                                {.name = "a", .lost = "d"},
                                {.name = "a", .remedy = "e"}}});
}

TEST(CapabilitiesReader, WhatNobodyHasWrittenIsRefused) {
  for (const std::string_view json :
       {R"([])", R"({"more": 1})", R"({"filesystem": 1})", R"({"filesystem": null})",
        R"({"tty": true, "tty": true})", R"({"osFilesystemIsolation": "perhaps"})",
        R"({"storage": ["paper"]})", R"({"storage": "disk"})", R"({"controls": {}})",
        R"({"controls": [1]})", R"({"controls": [{"name": "a", "more": 1}]})"}) {
    EXPECT_FALSE(Read(json)) << json;
  }
  const auto refused = Read(R"({"controls": [{"name": "a"}, {"works": 1}]})");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "controls[1].works");
}

}  // namespace
}  // namespace palmshed::model
