#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <optional>
#include <string>

#include "model/names.h"
#include "model/print.h"
#include "palmshed/files.h"
#include "palmshed/json.h"

namespace palmshed {
namespace {

void Print(const FileStat& stat, boost::json::object& into) {
  model::PutText(into, "type", model::Spell(stat.type));
  model::PutIfKnown(into, "size", std::optional(stat.size));
  into["mode"] = stat.mode;
  model::PutText(into, "modifiedAt", model::Iso8601(stat.modified));
}

}  // namespace

inline namespace v1 {

std::string ToJson(const FileStat& stat) {
  boost::json::object out;
  Print(stat, out);
  return boost::json::serialize(out);
}

std::string ToJson(const DirEntry& entry) {
  boost::json::object out;
  model::PutOctets(out, "name", entry.name);
  Print(entry.stat, out);
  return boost::json::serialize(out);
}

}  // namespace v1
}  // namespace palmshed
