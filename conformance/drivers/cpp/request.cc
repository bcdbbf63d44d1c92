#include "drivers/cpp/request.h"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <expected>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "drivers/cpp/base64.h"
#include "palmshed/error.h"

namespace palmshed::conformance {
namespace {

std::unexpected<Error> Invalid(std::string_view field, std::string_view why) {
  return std::unexpected(Error{.code = ErrorCode::kInvalidOptions,
                               .message = std::string(field) + " " + std::string(why),
                               .field = std::string(field)});
}

Result<std::string> Decode(std::string_view field, std::string_view text) {
  std::optional<std::string> bytes = FromBase64(text);
  if (!bytes) return Invalid(field, "is not base64");
  return *std::move(bytes);
}

}  // namespace

std::int64_t Request::id() const {
  const boost::json::value* id = document_.if_contains("id");
  const std::int64_t* number = id == nullptr ? nullptr : id->if_int64();
  return number == nullptr ? 0 : *number;
}

std::string Request::Text(std::string_view field) const {
  const boost::json::value* value = document_.if_contains(field);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

Result<std::optional<std::uint64_t>> Request::Count(std::string_view field) const {
  const boost::json::value* value = document_.if_contains(field);
  if (value == nullptr) return std::nullopt;
  const std::int64_t* number = value->if_int64();
  if (number == nullptr || *number < 0) return Invalid(field, "must be a whole number");
  return static_cast<std::uint64_t>(*number);
}

Result<std::optional<std::uint32_t>> Request::Number(std::string_view field) const {
  const auto number = Count(field);
  if (!number) return std::unexpected(number.error());
  if (!*number) return std::nullopt;
  if (**number > std::numeric_limits<std::uint32_t>::max()) {
    return Invalid(field, "must be a whole number of 32 bits");
  }
  return static_cast<std::uint32_t>(**number);
}

bool Request::Flag(std::string_view field) const {
  const boost::json::value* value = document_.if_contains(field);
  return value != nullptr && value->is_bool() && value->get_bool();
}

boost::json::object Request::Document(std::string_view field) const {
  const boost::json::value* value = document_.if_contains(field);
  return value != nullptr && value->is_object() ? value->get_object() : boost::json::object();
}

Result<std::string> Request::Bytes(std::string_view field) const {
  return Decode(field, Text(field));
}

Result<std::string> Request::Path(std::string_view field) const {
  const boost::json::value* value = document_.if_contains(field);
  if (value == nullptr || !value->is_object()) return Text(field);
  const boost::json::value* text = value->get_object().if_contains("base64");
  if (text == nullptr || !text->is_string()) return Invalid(field, "has no base64");
  return Decode(field, text->get_string());
}

}  // namespace palmshed::conformance
