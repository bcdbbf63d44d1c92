#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/json_reader.h"
#include "model/json_value.h"
#include "model/validate.h"
#include "palmshed/error.h"
#include "palmshed/json.h"
#include "palmshed/options.h"

namespace palmshed {
namespace {

using model::JsonValue;
using model::ObjectReader;

Result<Mount> ReadMount(const JsonValue& value, const std::string& path) {
  Mount mount;
  ObjectReader in(value, path);
  in.Text("source", mount.source);
  in.Text("target", mount.target);
  in.Flag("readOnly", mount.read_only);
  PALMSHED_TRY_VOID(in.Finish());
  return mount;
}

Result<void> ReadMounts(ObjectReader& in, std::vector<Mount>& into) {
  const JsonValue* const list = in.Take("mounts", JsonValue::Kind::kArray);
  if (list == nullptr) return {};
  for (const JsonValue& item : list->items) {
    const std::string path = in.PathOf("mounts[" + std::to_string(into.size()) + "]");
    PALMSHED_TRY(Mount mount, ReadMount(item, path));
    into.push_back(std::move(mount));
  }
  return {};
}

void ReadLimits(ObjectReader& in, SandboxOptions& options) {
  in.Cores("cpu", options.cpu);
  in.Cores("cpuQuota", options.cpu_quota);
  in.Time("cpuTimeLimit", options.cpu_time_limit);
  in.Size("memory", options.memory);
  in.Size("diskQuota", options.disk_quota);
  in.Time("timeout", options.timeout);
  in.Count("pids", options.pids);
  in.Size("maxOutputBytes", options.max_output);
  in.Time("idleTimeout", options.idle_timeout);
  in.Time("maxLifetime", options.max_lifetime);
}

}  // namespace

inline namespace v1 {

Result<SandboxOptions> ParseSandboxOptions(std::string_view json) {
  PALMSHED_TRY(const JsonValue document, model::ParseJson(json));
  SandboxOptions options;
  ObjectReader in(document, "");
  in.Text("backend", options.backend);
  ReadLimits(in, options);
  in.Choice("network", options.network);
  in.Text("workDir", options.work_dir);
  in.TextMap("env", options.env);
  in.Flag("osFilesystemIsolation", options.os_filesystem_isolation);
  in.Text("image", options.image);
  in.Keep(ReadMounts(in, options.mounts));
  in.TextList("networkAllow", options.network_allow);
  in.Text("proxyUrl", options.proxy_url);
  in.TextList("degraded", options.degraded);
  in.Text("name", options.name);
  in.TextMap("labels", options.labels);
  in.Choice("storage", options.storage);
  PALMSHED_TRY_VOID(in.Finish());
  PALMSHED_TRY_VOID(model::Validate(options));
  return options;
}

}  // namespace v1
}  // namespace palmshed
