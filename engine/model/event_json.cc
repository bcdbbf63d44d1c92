#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <string>
#include <utility>

#include "model/print.h"
#include "palmshed/events.h"
#include "palmshed/json.h"

namespace palmshed {
inline namespace v1 {

std::string ToJson(const Event& event) {
  boost::json::object out;
  model::PutText(out, "name", event.name);
  model::PutText(out, "time", model::Iso8601(event.time));
  model::PutTextIfAny(out, "sandbox", event.sandbox);
  model::PutTextIfAny(out, "execution", event.execution);
  boost::json::object fields;
  for (const auto& [name, value] : event.fields) model::PutText(fields, name, value);
  out["fields"] = std::move(fields);
  return boost::json::serialize(out);
}

}  // namespace v1
}  // namespace palmshed
