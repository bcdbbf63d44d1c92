// Pieces that the printers of documents share. Boost.JSON is only declared here.
#pragma once

#include <boost/json/fwd.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palmshed/units.h"

namespace palmshed::model {

/// ISO 8601 in UTC with milliseconds: "2025-03-01T12:00:00.000Z".
std::string Iso8601(std::chrono::system_clock::time_point time);

/// Text for people or programs; bytes that are not UTF-8 are replaced.
void PutText(boost::json::object& into, std::string_view name, std::string_view text);
/// As above, but left out when empty.
void PutTextIfAny(boost::json::object& into, std::string_view name, std::string_view text);
/// Bytes exactly as they are: `name` as a string, and `<name>Encoding` "utf-8" or "base64".
void PutOctets(boost::json::object& into, std::string_view name, std::string_view bytes);
/// Measurements are left out when unknown, never printed as 0.
void PutIfKnown(boost::json::object& into, std::string_view name, std::optional<int> value);
void PutIfKnown(boost::json::object& into, std::string_view name,
                std::optional<std::uint64_t> value);
void PutIfKnown(boost::json::object& into, std::string_view name, std::optional<Millis> value);
void PutIfKnown(boost::json::object& into, std::string_view name, std::optional<Bytes> value);
void PutTexts(boost::json::object& into, std::string_view name,
              const std::vector<std::string>& texts);

}  // namespace palmshed::model
