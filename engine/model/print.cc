#include "model/print.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base64.h"
#include "model/utf8.h"
#include "palmshed/units.h"

namespace palmshed::model {
namespace {

namespace json = boost::json;

template <class T>
void Put(json::object& into, std::string_view name, const T& value) {
  into.emplace(json::string_view(name.data(), name.size()), value);
}

json::string Text(std::string_view text) { return json::string(text.data(), text.size()); }

}  // namespace

std::string Iso8601(std::chrono::system_clock::time_point time) {
  using std::chrono::floor;
  const auto days = floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(days);
  const std::chrono::hh_mm_ss clock(floor<std::chrono::milliseconds>(time - days));
  char text[64];
  const int size = std::snprintf(
      text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return {text, static_cast<std::size_t>(size)};
}

void PutText(json::object& into, std::string_view name, std::string_view text) {
  Put(into, name, Text(ReplaceInvalidUtf8(text)));
}

void PutTextIfAny(json::object& into, std::string_view name, std::string_view text) {
  if (!text.empty()) PutText(into, name, text);
}

void PutOctets(json::object& into, std::string_view name, std::string_view bytes) {
  const bool is_text = IsUtf8(bytes);
  const std::string encoding_name = std::string(name) + "Encoding";
  Put(into, name, is_text ? Text(bytes) : Text(EncodeBase64(bytes)));
  Put(into, encoding_name, is_text ? Text("utf-8") : Text("base64"));
}

void PutIfKnown(json::object& into, std::string_view name, std::optional<int> value) {
  if (value) Put(into, name, *value);
}

void PutIfKnown(json::object& into, std::string_view name, std::optional<std::uint64_t> value) {
  if (value) Put(into, name, *value);
}

void PutIfKnown(json::object& into, std::string_view name, std::optional<Millis> value) {
  if (value) Put(into, name, static_cast<std::int64_t>(value->count()));
}

void PutIfKnown(json::object& into, std::string_view name, std::optional<Bytes> value) {
  if (value) Put(into, name, Count(*value));
}

void PutTexts(json::object& into, std::string_view name, const std::vector<std::string>& texts) {
  json::array list;
  for (const std::string& text : texts) list.emplace_back(Text(ReplaceInvalidUtf8(text)));
  Put(into, name, list);
}

}  // namespace palmshed::model
