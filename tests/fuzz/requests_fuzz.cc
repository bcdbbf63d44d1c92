// Documents of requests: each is taken, or refused by an error that is a document itself.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/require.h"
#include "model/json_value.h"
#include "model/quantities.h"
#include "palmshed/error.h"
#include "palmshed/json.h"

namespace palmshed::fuzz {
namespace {

void RequireDocument(const Error& error) {
  Require(error.code == ErrorCode::kInvalidOptions, "the error is of the request");
  Require(!error.message.empty(), "the error says what is wrong");
  Require(model::ParseJson(ToJson(error)).has_value(), "the error is a JSON document");
}

template <class T>
void RequireVerdict(const Result<T>& read, bool is_json) {
  Require(!read || is_json, "what was taken is JSON");
  if (!read) RequireDocument(read.error());
}

}  // namespace
}  // namespace palmshed::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace palmshed;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool is_json = model::ParseJson(text).has_value();
  fuzz::RequireVerdict(ParseSandboxOptions(text), is_json);
  fuzz::RequireVerdict(ParseExecRequest(text), is_json);
  if (const auto bytes = ParseBytes(text, "memory")) {
    fuzz::Require(Count(*bytes) <= model::kMaxInteger, "a size is exact in a double");
  } else {
    fuzz::RequireDocument(bytes.error());
  }
  return 0;
}
