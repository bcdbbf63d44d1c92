// Prints one JSON line for each document that the public printers make, with every member set and
// with as few as possible: {"schema": "...", "document": {...}}. After those, one line for each
// enumeration: {"enumeration": "<schema>#<pointer>", "values": [...]}. check_engine.py compares
// both with spec/schemas.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "model/names.h"
#include "model/validate.h"
#include "palmshed/palmshed.h"

namespace palmshed {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::system_clock::time_point kStart{1709210096789ms};

template <class T>
void PrintDocument(std::string_view schema, const T& value) {
  std::printf(R"({"schema":"%.*s","document":%s})"
              "\n",
              static_cast<int>(schema.size()), schema.data(), ToJson(value).c_str());
}

void PrintResults() {
  PrintDocument("exec-result", ExecResult{.id = "exec_0123abcd",
                                          .status = Status::kCompleted,
                                          .exit_code = 0,
                                          .backend = "native"});
  for (const auto& [cause, name] : model::Spellings<Cause>()) {
    PrintDocument("exec-result",
                  ExecResult{.id = "exec_0123abcd",
                             .status = Status::kFailed,
                             .termination = {.cause = cause,
                                             .limit = 67108864,
                                             .observed = 67112960,
                                             .signal = 9,
                                             .stage = "exec",
                                             .sys_errno = 2,
                                             .evidence = {{"oom_kill", 1}, {"delta", -1}}},
                             .out = {.bytes = "h\xC3\xA9\n", .total = 4},
                             .err = {.bytes = "\xFF\xFE", .total = 1ULL << 40, .truncated = true},
                             .duration = 1234ms,
                             .cpu_time = 1000ms,
                             .peak_memory = Bytes{67108864},
                             .backend = "native",
                             .started_at = kStart,
                             .finished_at = kStart + 1234ms,
                             .weaker = {"memory", "cpuQuota"},
                             .timings = {{.step = "plan", .duration = 12us},
                                         {.step = "exec+run", .duration = 1s}}});
  }
  for (const Status status : {Status::kCancelled, Status::kTimedOut}) {
    PrintDocument("exec-result",
                  ExecResult{.id = "exec_0123abcd", .status = status, .backend = "native"});
  }
}

void PrintMetadata() {
  PrintDocument(
      "exec-metadata",
      ExecMetadata{.id = "exec_0123abcd", .backend = "native", .spec_version = kSpecVersion});
  PrintDocument("exec-metadata", ExecMetadata{.id = "exec_0123abcd",
                                              .backend = "native",
                                              .spec_version = kSpecVersion,
                                              .started_at = kStart,
                                              .finished_at = kStart + 5ms,
                                              .duration = 5ms,
                                              .exit_code = 143,
                                              .timed_out = true,
                                              .cpu_time = 4ms,
                                              .peak_memory = Bytes{4096},
                                              .signal = 15});
}

void PrintCapabilities() {
  PrintDocument("capabilities", Capabilities{});
  for (const auto& [support, name] : model::Spellings<Support>()) {
    PrintDocument("capabilities", Capabilities{.filesystem = true,
                                               .network_isolation = true,
                                               .os_filesystem_isolation = support,
                                               .filesystem_view = "private",
                                               .crash_kill = "kernel",
                                               .host_loopback = "unreachable",
                                               .supplementary_groups = "dropped",
                                               .pids_limits = true,
                                               .pids_scope = "execution",
                                               .memory_enforcement = "sampled",
                                               .cpu_time_enforcement = "kernel",
                                               .storage = {Storage::kDisk, Storage::kLoop},
                                               .controls = {{.name = "networkIsolation",
                                                             .works = true,
                                                             .mechanism = "network namespace",
                                                             .detail = "connect was refused",
                                                             .lost = "the network",
                                                             .remedy = "sysctl -w a=1"},
                                                            {.name = "pids"}}});
  }
}

void PrintErrors() {
  for (const auto& [code, name] : model::Spellings<ErrorCode>()) {
    PrintDocument("error", Error{.code = code,
                                 .message = "openat \xFF: not found.",
                                 .field = "mounts[0].target",
                                 .op = "openat",
                                 .remedy = "Make it.",
                                 .sys_errno = 2,
                                 .limit = 10,
                                 .observed = 11});
  }
  PrintDocument("error", Error{.code = ErrorCode::kDiskQuotaExceeded, .message = "It is full."});
  PrintDocument("error", Error{.code = ErrorCode::kConflict, .message = "It has ended."});
}

void PrintEvents() {
  PrintDocument("event", Event{.name = "backend.init", .time = kStart});
  PrintDocument("event", Event{.name = "exec.end",
                               .time = kStart,
                               .sandbox = "sbx_0123abcd",
                               .execution = "exec_0123abcd",
                               .fields = {{"exitCode", "0"}}});
}

void PrintFiles() {
  for (const auto& [type, name] : model::Spellings<FileType>()) {
    PrintDocument("file-stat", FileStat{.type = type, .size = Bytes{7}, .mode = 0644});
  }
  PrintDocument("file-stat", DirEntry{.name = "a b", .stat = {.modified = kStart}});
  PrintDocument("file-stat", DirEntry{.name = "\xFF", .stat = {.mode = 07777}});
}

void PrintValues(std::string_view pointer, const std::vector<std::string_view>& values) {
  std::string list;
  for (const std::string_view value : values) {
    list.append(list.empty() ? "" : ",").append("\"").append(value).append("\"");
  }
  std::printf(R"({"enumeration":"%.*s","values":[%s]})"
              "\n",
              static_cast<int>(pointer.size()), pointer.data(), list.c_str());
}

template <class E>
void PrintEnumeration(std::string_view pointer, std::vector<E> without = {}) {
  std::vector<std::string_view> names;
  for (const auto& [value, name] : model::Spellings<E>()) {
    if (std::ranges::find(without, value) == without.end()) names.push_back(name);
  }
  PrintValues(pointer, names);
}

void PrintEnumerations() {
  PrintEnumeration<ErrorCode>("error#/$defs/code/enum");
  PrintEnumeration<Cause>("termination#/properties/cause/enum");
  PrintEnumeration<Status>("exec-result#/properties/status/enum", {Status::kRunning});
  PrintEnumeration<Network>("sandbox-options#/properties/network/enum");
  PrintEnumeration<Storage>("sandbox-options#/properties/storage/enum");
  PrintEnumeration<Storage>("capabilities#/properties/storage/items/enum");
  PrintEnumeration<Descendants>("exec-options#/properties/descendants/enum");
  PrintEnumeration<FileType>("file-stat#/properties/type/enum");
  PrintEnumeration<Support>("capabilities#/properties/osFilesystemIsolation/enum");
  PrintValues("sandbox-options#/properties/degraded/items/enum",
              {std::begin(model::kDegradable), std::end(model::kDegradable)});
}

}  // namespace
}  // namespace palmshed

int main() {
  palmshed::PrintResults();
  palmshed::PrintMetadata();
  palmshed::PrintCapabilities();
  palmshed::PrintErrors();
  palmshed::PrintEvents();
  palmshed::PrintFiles();
  palmshed::PrintEnumerations();
  return 0;
}
