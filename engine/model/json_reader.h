// Reads one object of a request. Objects are closed: a member that nobody read is an error, and so
// is a name given twice. Errors name the full path of the field, e.g. "mounts[0].target".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/json_value.h"
#include "model/names.h"
#include "palmshed/error.h"
#include "palmshed/units.h"

namespace palmshed::model {

/// Each reading call leaves its target alone when the member is absent. The first error sticks and
/// is what Finish() returns; null is never a value (JavaScript prints NaN as null, which must not
/// come to mean "no limit").
class ObjectReader {
 public:
  using Texts = std::vector<std::string>;
  using Map = std::vector<std::pair<std::string, std::string>>;

  /// `path` is empty for the document itself. Both outlive the reader.
  ObjectReader(const JsonValue& value, std::string path);

  void Text(std::string_view name, std::string& into);
  void Flag(std::string_view name, bool& into);
  void Flag(std::string_view name, std::optional<bool>& into);
  void Time(std::string_view name, std::optional<Millis>& into);
  void Size(std::string_view name, std::optional<Bytes>& into);
  void Count(std::string_view name, std::optional<std::uint64_t>& into);
  void Cores(std::string_view name, std::optional<double>& into);
  void TextList(std::string_view name, Texts& into);
  void TextMap(std::string_view name, Map& into);
  template <class E>
  void Choice(std::string_view name, E& into) {
    const JsonValue* const value = Take(name, JsonValue::Kind::kString);
    if (value == nullptr) return;
    const std::optional<E> known = FromName<E>(value->text);
    if (!known) return Fail(name, "must be " + Choices<E>());
    into = *known;
  }

  /// The member, marked as read; nullptr when absent or given twice.
  const JsonValue* Take(std::string_view name);
  /// As above, and an error unless it is of this kind.
  const JsonValue* Take(std::string_view name, JsonValue::Kind kind);
  /// Reads an object or array member by member; keeps the first error of `finished`.
  void Keep(const Result<void>& finished);
  void Fail(std::string_view name, std::string_view problem);
  /// `name` as seen from the document, e.g. "mounts[0].target".
  std::string PathOf(std::string_view name) const;

  /// The first error, or an error for the first member that was not read.
  Result<void> Finish();

 private:
  std::optional<std::uint64_t> Whole(std::string_view name, std::string_view unit);

  const JsonValue& object_;
  std::string path_;
  std::vector<bool> read_;
  std::optional<Error> error_;
};

}  // namespace palmshed::model
