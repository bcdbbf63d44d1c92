#include "model/json_reader.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/json_value.h"
#include "model/quantities.h"
#include "model/utf8.h"
#include "palmshed/error.h"
#include "palmshed/json.h"
#include "palmshed/units.h"

namespace palmshed::model {
namespace {

using Kind = JsonValue::Kind;

std::string MustBe(Kind wanted, Kind found) {
  return std::string("must be ").append(Describe(wanted)).append(", not ").append(Describe(found));
}

}  // namespace

ObjectReader::ObjectReader(const JsonValue& value, std::string path)
    : object_(value), path_(std::move(path)), read_(value.items.size()) {
  if (value.kind == Kind::kObject) return;
  error_ = InvalidOption(path_.empty() ? "the document" : path_, MustBe(Kind::kObject, value.kind));
}

std::string ObjectReader::PathOf(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

void ObjectReader::Fail(std::string_view name, std::string_view problem) {
  if (!error_) error_ = InvalidOption(PathOf(name), problem);
}

void ObjectReader::Keep(const Result<void>& finished) {
  if (!error_ && !finished) error_ = finished.error();
}

const JsonValue* ObjectReader::Take(std::string_view name) {
  const JsonValue* found = nullptr;
  for (std::size_t i = 0; i < object_.items.size(); ++i) {
    if (object_.kind != Kind::kObject || object_.items[i].name != name) continue;
    read_[i] = true;
    if (found != nullptr) {
      Fail(name, "is given twice");
      return nullptr;
    }
    found = &object_.items[i];
  }
  return found;
}

const JsonValue* ObjectReader::Take(std::string_view name, Kind kind) {
  const JsonValue* const value = Take(name);
  if (value == nullptr || value->kind == kind) return value;
  Fail(name, MustBe(kind, value->kind));
  return nullptr;
}

void ObjectReader::Text(std::string_view name, std::string& into) {
  if (const JsonValue* const value = Take(name, Kind::kString)) into = value->text;
}

void ObjectReader::Flag(std::string_view name, bool& into) {
  if (const JsonValue* const value = Take(name, Kind::kBool)) into = value->flag;
}

void ObjectReader::Flag(std::string_view name, std::optional<bool>& into) {
  if (const JsonValue* const value = Take(name, Kind::kBool)) into = value->flag;
}

std::optional<std::uint64_t> ObjectReader::Whole(std::string_view name, std::string_view unit) {
  const JsonValue* const value = Take(name, Kind::kNumber);
  if (value == nullptr) return std::nullopt;
  const auto whole = WholeNumber(value->text);
  if (whole) return *whole;
  Fail(name, Explain(whole.error(), unit));
  return std::nullopt;
}

void ObjectReader::Time(std::string_view name, std::optional<Millis>& into) {
  if (const auto whole = Whole(name, "milliseconds")) into = Millis(*whole);
}

void ObjectReader::Count(std::string_view name, std::optional<std::uint64_t>& into) {
  if (const auto whole = Whole(name, "processes")) into = whole;
}

void ObjectReader::Size(std::string_view name, std::optional<Bytes>& into) {
  const JsonValue* const value = Take(name);
  if (value == nullptr) return;
  if (value->kind == Kind::kNumber) {
    if (const auto whole = Whole(name, "bytes")) into = Bytes{*whole};
  } else if (value->kind == Kind::kString) {
    const Result<Bytes> size = ParseBytes(value->text, PathOf(name));
    if (size) into = *size;
    if (!size && !error_) error_ = size.error();
  } else {
    Fail(name, "must be a number of bytes or a size such as \"64MB\"");
  }
}

void ObjectReader::Cores(std::string_view name, std::optional<double>& into) {
  const JsonValue* const value = Take(name, Kind::kNumber);
  if (value == nullptr) return;
  const auto cores = RealNumber(value->text);
  if (!cores) return Fail(name, Explain(cores.error(), "cores"));
  into = *cores;
}

void ObjectReader::TextList(std::string_view name, Texts& into) {
  const JsonValue* const list = Take(name, Kind::kArray);
  if (list == nullptr) return;
  for (const JsonValue& item : list->items) {
    if (item.kind != Kind::kString) {
      const std::string element = std::string(name) + "[" + std::to_string(into.size()) + "]";
      return Fail(element, MustBe(Kind::kString, item.kind));
    }
    into.push_back(item.text);
  }
}

void ObjectReader::TextMap(std::string_view name, Map& into) {
  const JsonValue* const map = Take(name, Kind::kObject);
  if (map == nullptr) return;
  std::vector<std::string_view> names;
  for (const JsonValue& item : map->items) {
    if (item.kind != Kind::kString) {
      return Fail(std::string(name) + "." + Shown(item.name), MustBe(Kind::kString, item.kind));
    }
    into.emplace_back(item.name, item.text);
    names.push_back(item.name);
  }
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) Fail(std::string(name) + "." + Shown(*twice), "is given twice");
}

Result<void> ObjectReader::Finish() {
  for (std::size_t i = 0; i < read_.size() && !error_; ++i) {
    if (!read_[i]) Fail(Shown(object_.items[i].name), "is not a field of this request");
  }
  if (error_) return std::unexpected(*error_);
  return {};
}

}  // namespace palmshed::model
