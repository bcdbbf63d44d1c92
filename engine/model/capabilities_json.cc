#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <string>
#include <utility>

#include "model/names.h"
#include "model/print.h"
#include "palmshed/capabilities.h"
#include "palmshed/json.h"
#include "palmshed/options.h"

namespace palmshed {
namespace {

namespace json = boost::json;

json::object Print(const Control& control) {
  json::object out;
  model::PutText(out, "name", control.name);
  out["works"] = control.works;
  model::PutTextIfAny(out, "mechanism", control.mechanism);
  model::PutTextIfAny(out, "detail", control.detail);
  model::PutTextIfAny(out, "lost", control.lost);
  model::PutTextIfAny(out, "remedy", control.remedy);
  return out;
}

}  // namespace

inline namespace v1 {

std::string ToJson(const Capabilities& capabilities) {
  json::object out;
  out["filesystem"] = capabilities.filesystem;
  out["networkIsolation"] = capabilities.network_isolation;
  out["cpuLimits"] = capabilities.cpu_limits;
  out["memoryLimits"] = capabilities.memory_limits;
  out["streaming"] = capabilities.streaming;
  out["remoteExecution"] = capabilities.remote_execution;
  out["cpuQuotaLimits"] = capabilities.cpu_quota_limits;
  model::PutText(out, "osFilesystemIsolation", model::Spell(capabilities.os_filesystem_isolation));
  model::PutTextIfAny(out, "filesystemView", capabilities.filesystem_view);
  model::PutTextIfAny(out, "crashKill", capabilities.crash_kill);
  model::PutTextIfAny(out, "hostLoopback", capabilities.host_loopback);
  model::PutTextIfAny(out, "supplementaryGroups", capabilities.supplementary_groups);
  out["pids"] = capabilities.pids_limits;
  model::PutTextIfAny(out, "pidsScope", capabilities.pids_scope);
  out["diskQuota"] = capabilities.disk_quota;
  out["tty"] = capabilities.tty;
  out["mounts"] = capabilities.mounts;
  model::PutTextIfAny(out, "memoryEnforcement", capabilities.memory_enforcement);
  model::PutTextIfAny(out, "cpuTimeEnforcement", capabilities.cpu_time_enforcement);
  json::array storage;
  for (const Storage kind : capabilities.storage) storage.emplace_back(model::Spell(kind));
  out["storage"] = std::move(storage);
  json::array controls;
  for (const Control& control : capabilities.controls) controls.emplace_back(Print(control));
  out["controls"] = std::move(controls);
  return json::serialize(out);
}

}  // namespace v1
}  // namespace palmshed
