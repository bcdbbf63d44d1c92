#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <string>
#include <string_view>

#include "model/names.h"
#include "model/print.h"
#include "palmshed/error.h"
#include "palmshed/json.h"

namespace palmshed {
inline namespace v1 {

std::string ToJson(const Error& error) {
  boost::json::object out;
  model::PutText(out, "code", ToString(error.code));
  model::PutText(out, "message", error.message);
  model::PutTextIfAny(out, "field", error.field);
  model::PutTextIfAny(out, "op", error.op);
  model::PutTextIfAny(out, "remedy", error.remedy);
  if (error.sys_errno != 0) out["errno"] = error.sys_errno;
  if (const std::string_view resource = model::ResourceOf(error.code); !resource.empty()) {
    model::PutText(out, "resource", resource);
    model::PutIfKnown(out, "limit", error.limit);
    model::PutIfKnown(out, "observed", error.observed);
    out["recoverable"] = true;
  }
  return boost::json::serialize(out);
}

}  // namespace v1
}  // namespace palmshed
