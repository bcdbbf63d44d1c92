// Results and errors with bytes that a program chose: what goes out is JSON, whatever they were.
// Names of members are the engine's own.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.h"
#include "model/base64.h"
#include "model/json_value.h"
#include "model/utf8.h"
#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/events.h"
#include "palmshed/files.h"
#include "palmshed/json.h"
#include "palmshed/result.h"

namespace palmshed::fuzz {
namespace {

void RequireJson(const std::string& document) {
  const auto read = model::ParseJson(document);
  Require(read.has_value(), read ? "" : read.error().message + ": " + document);
  Require(read->kind == model::JsonValue::Kind::kObject, "it is an object: " + document);
  Require(model::IsUtf8(document), "it is UTF-8: " + document);
}

Captured CapturedOf(FuzzedDataProvider& input) {
  return {.bytes = input.ConsumeRandomLengthString(),
          .total = input.ConsumeIntegral<std::uint64_t>(),
          .truncated = input.ConsumeBool()};
}

ExecResult ResultOf(FuzzedDataProvider& input) {
  ExecResult result;
  result.id = input.ConsumeRandomLengthString();
  result.status = input.PickValueInArray(
      {Status::kCompleted, Status::kFailed, Status::kCancelled, Status::kTimedOut});
  result.exit_code = input.ConsumeIntegral<int>();
  result.termination = {.cause = input.PickValueInArray({Cause::kExited, Cause::kMemory,
                                                         Cause::kStartupFailed, Cause::kInternal}),
                        .limit = input.ConsumeIntegral<std::uint64_t>(),
                        .stage = input.ConsumeRandomLengthString(),
                        .evidence = {{"oom_kill", input.ConsumeIntegral<std::int64_t>()}}};
  result.out = CapturedOf(input);
  result.err = CapturedOf(input);
  result.weaker = {input.ConsumeRandomLengthString()};
  result.mounts = {
      {.source = input.ConsumeRandomLengthString(), .target = input.ConsumeRandomLengthString()}};
  return result;
}

void RequireThatTextIsKept(std::string_view bytes) {
  const std::string text = model::ReplaceInvalidUtf8(bytes);
  Require(model::IsUtf8(text), "what replaces is UTF-8");
  Require(model::ReplaceInvalidUtf8(text) == text, "UTF-8 is left alone");
  Require(!model::IsUtf8(bytes) || text == bytes, "UTF-8 is left alone");
  Require(model::CutCharacter(bytes) <= bytes.size(), "a character is within its text");
  Require(model::DecodeBase64(model::EncodeBase64(bytes)) == bytes, "base64 comes back");
  if (const auto decoded = model::DecodeBase64(bytes)) {
    Require(model::EncodeBase64(*decoded) == bytes, "there is one way to write bytes");
  }
}

}  // namespace
}  // namespace palmshed::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace palmshed;
  FuzzedDataProvider input(data, size);
  fuzz::RequireJson(ToJson(fuzz::ResultOf(input)));
  fuzz::RequireJson(ToJson(DirEntry{.name = input.ConsumeRandomLengthString()}));
  fuzz::RequireJson(
      ToJson(Event{.name = "x", .fields = {{"k", input.ConsumeRandomLengthString()}}}));
  Capabilities capabilities;
  capabilities.controls = {{.name = "x", .detail = input.ConsumeRandomLengthString()}};
  fuzz::RequireJson(ToJson(capabilities));
  const std::string rest = input.ConsumeRemainingBytesAsString();
  fuzz::RequireJson(ToJson(Error{.message = rest, .field = rest, .remedy = rest}));
  fuzz::RequireThatTextIsKept(rest);
  return 0;
}
