#include "model/json_value.h"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/error.hpp>
#include <boost/json/parse_options.hpp>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "palmshed/error.h"

namespace palmshed::model {
namespace {

namespace json = boost::json;
using Kind = JsonValue::Kind;

// Builds the tree from what Boost.JSON's tokenizer reports; the names of the members are its.
class TreeBuilder {
 public:
  // The whole document is bounded instead: by its size and by its number of values.
  static constexpr std::size_t max_array_size = kMaxDocumentBytes;
  static constexpr std::size_t max_object_size = kMaxDocumentBytes;
  static constexpr std::size_t max_string_size = kMaxDocumentBytes;
  static constexpr std::size_t max_key_size = kMaxDocumentBytes;

  JsonValue TakeRoot() { return std::move(root_); }

  bool on_document_begin(json::error_code& /*ec*/) { return true; }
  bool on_document_end(json::error_code& /*ec*/) { return true; }
  bool on_array_begin(json::error_code& ec) { return Open(Kind::kArray, ec); }
  bool on_array_end(std::size_t /*n*/, json::error_code& /*ec*/) { return Close(); }
  bool on_object_begin(json::error_code& ec) { return Open(Kind::kObject, ec); }
  bool on_object_end(std::size_t /*n*/, json::error_code& /*ec*/) { return Close(); }
  bool on_key_part(json::string_view part, std::size_t /*n*/, json::error_code& /*ec*/) {
    return Append(key_, part);
  }
  bool on_key(json::string_view part, std::size_t /*n*/, json::error_code& /*ec*/) {
    return Append(key_, part);
  }
  bool on_string_part(json::string_view part, std::size_t /*n*/, json::error_code& /*ec*/) {
    return Append(text_, part);
  }
  bool on_string(json::string_view part, std::size_t /*n*/, json::error_code& ec) {
    return Append(text_, part) && AddText(Kind::kString, ec);
  }
  bool on_number_part(json::string_view part, json::error_code& /*ec*/) {
    return Append(text_, part);
  }
  // The values are ignored, because Boost.JSON rounds: the text is kept instead.
  bool on_int64(std::int64_t /*i*/, json::string_view part, json::error_code& ec) {
    return Append(text_, part) && AddText(Kind::kNumber, ec);
  }
  bool on_uint64(std::uint64_t /*u*/, json::string_view part, json::error_code& ec) {
    return Append(text_, part) && AddText(Kind::kNumber, ec);
  }
  bool on_double(double /*d*/, json::string_view part, json::error_code& ec) {
    return Append(text_, part) && AddText(Kind::kNumber, ec);
  }
  bool on_bool(bool flag, json::error_code& ec) {
    return Add(JsonValue{.kind = Kind::kBool, .flag = flag}, ec);
  }
  bool on_null(json::error_code& ec) { return Add(JsonValue{}, ec); }
  bool on_comment_part(json::string_view /*part*/, json::error_code& /*ec*/) { return true; }
  bool on_comment(json::string_view /*part*/, json::error_code& /*ec*/) { return true; }

 private:
  static bool Append(std::string& to, json::string_view part) {
    to.append(part.data(), part.size());
    return true;
  }

  bool AddText(Kind kind, json::error_code& ec) {
    return Add(JsonValue{.kind = kind, .text = std::exchange(text_, {})}, ec);
  }

  bool Add(JsonValue value, json::error_code& ec) {
    if (++values_ > kMaxDocumentValues) {
      ec = json::error::array_too_large;
      return false;
    }
    value.name = std::exchange(key_, {});
    if (open_.empty()) {
      root_ = std::move(value);
    } else {
      open_.back().items.push_back(std::move(value));
    }
    return true;
  }

  bool Open(Kind kind, json::error_code& ec) {
    if (++values_ > kMaxDocumentValues) {
      ec = json::error::array_too_large;
      return false;
    }
    open_.push_back(JsonValue{.kind = kind, .name = std::exchange(key_, {})});
    return true;
  }

  bool Close() {
    JsonValue closed = std::move(open_.back());
    open_.pop_back();
    if (open_.empty()) {
      root_ = std::move(closed);
    } else {
      open_.back().items.push_back(std::move(closed));
    }
    return true;
  }

  JsonValue root_;
  std::vector<JsonValue> open_;  // Arrays and objects that have begun, outermost first.
  std::string key_;
  std::string text_;
  std::size_t values_ = 0;
};

Error Malformed(const std::string& problem) { return InvalidOption("the document", problem); }

std::string ProblemAt(const json::error_code& ec, std::size_t offset) {
  if (ec == json::error::array_too_large) {
    return "has more than " + std::to_string(kMaxDocumentValues) + " values";
  }
  if (ec == json::error::too_deep) {
    return "is nested more than " + std::to_string(kMaxDocumentDepth) + " levels deep";
  }
  return "is not valid JSON at byte " + std::to_string(offset) + ": " + ec.message();
}

}  // namespace

Result<JsonValue> ParseJson(std::string_view text) {
  if (text.size() > kMaxDocumentBytes) {
    return std::unexpected(
        Malformed("is longer than " + std::to_string(kMaxDocumentBytes) + " bytes"));
  }
  const json::parse_options options{.max_depth = kMaxDocumentDepth};
  json::basic_parser<TreeBuilder> parser(options);
  json::error_code ec;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), ec);
  if (ec) return std::unexpected(Malformed(ProblemAt(ec, used)));
  // The tokenizer stops behind the first value; only white space, which it takes, may follow.
  if (used < text.size()) {
    return std::unexpected(Malformed(ProblemAt(json::error::extra_data, used)));
  }
  return parser.handler().TakeRoot();
}

std::string_view Describe(JsonValue::Kind kind) {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return "a boolean";
    case Kind::kNumber:
      return "a number";
    case Kind::kString:
      return "a string";
    case Kind::kArray:
      return "an array";
    case Kind::kObject:
      return "an object";
  }
  PALMSHED_UNREACHABLE();
}

}  // namespace palmshed::model
