// One request of the protocol (conformance/schemas/protocol.schema.json) and the fields it carries.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "palmshed/error.h"

namespace palmshed::conformance {

class Request {
 public:
  explicit Request(boost::json::object document) : document_(std::move(document)) {}

  std::int64_t id() const;
  std::string op() const { return Text("op"); }
  boost::json::object& document() { return document_; }
  const boost::json::object& document() const { return document_; }

  /// A field as text; empty when it is not there or no text.
  std::string Text(std::string_view field) const;
  /// A whole number from 0 to 2^63-1; nullopt when it is not there.
  Result<std::optional<std::uint64_t>> Count(std::string_view field) const;
  /// As above, up to 2^32-1.
  Result<std::optional<std::uint32_t>> Number(std::string_view field) const;
  bool Flag(std::string_view field) const;
  /// A document inside; an empty one when it is not there.
  boost::json::object Document(std::string_view field) const;
  /// Bytes that are written as base64.
  Result<std::string> Bytes(std::string_view field) const;
  /// A path: text, or bytes as {"base64": ...}.
  Result<std::string> Path(std::string_view field) const;

 private:
  boost::json::object document_;
};

}  // namespace palmshed::conformance
