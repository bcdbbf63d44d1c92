#include "model/capabilities_reader.h"

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/json_reader.h"
#include "model/json_value.h"
#include "model/names.h"
#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/options.h"

namespace palmshed::model {
namespace {

Result<void> ReadControl(const JsonValue& value, const std::string& path, Control& into) {
  ObjectReader reader(value, path);
  reader.Text("name", into.name);
  reader.Flag("works", into.works);
  reader.Text("mechanism", into.mechanism);
  reader.Text("detail", into.detail);
  reader.Text("lost", into.lost);
  reader.Text("remedy", into.remedy);
  return reader.Finish();
}

void ReadControls(ObjectReader& reader, std::vector<Control>& into) {
  const JsonValue* const list = reader.Take("controls", JsonValue::Kind::kArray);
  if (list == nullptr) return;
  for (const JsonValue& item : list->items) {
    const std::string element = "controls[" + std::to_string(into.size()) + "]";
    reader.Keep(ReadControl(item, reader.PathOf(element), into.emplace_back()));
  }
}

void ReadStorage(ObjectReader& reader, std::vector<Storage>& into) {
  ObjectReader::Texts names;
  reader.TextList("storage", names);
  for (const std::string& name : names) {
    const std::optional<Storage> known = FromName<Storage>(name);
    if (!known) return reader.Fail("storage", "may have " + Choices<Storage>());
    into.push_back(*known);
  }
}

}  // namespace

Result<Capabilities> ReadCapabilities(const JsonValue& value, const std::string& path) {
  Capabilities read;
  ObjectReader reader(value, path);
  reader.Flag("filesystem", read.filesystem);
  reader.Flag("networkIsolation", read.network_isolation);
  reader.Flag("cpuLimits", read.cpu_limits);
  reader.Flag("memoryLimits", read.memory_limits);
  reader.Flag("streaming", read.streaming);
  reader.Flag("remoteExecution", read.remote_execution);
  reader.Flag("cpuQuotaLimits", read.cpu_quota_limits);
  reader.Choice("osFilesystemIsolation", read.os_filesystem_isolation);
  reader.Text("filesystemView", read.filesystem_view);
  reader.Text("crashKill", read.crash_kill);
  reader.Text("hostLoopback", read.host_loopback);
  reader.Text("supplementaryGroups", read.supplementary_groups);
  reader.Flag("pids", read.pids_limits);
  reader.Text("pidsScope", read.pids_scope);
  reader.Flag("diskQuota", read.disk_quota);
  reader.Flag("tty", read.tty);
  reader.Flag("mounts", read.mounts);
  reader.Text("memoryEnforcement", read.memory_enforcement);
  reader.Text("cpuTimeEnforcement", read.cpu_time_enforcement);
  ReadStorage(reader, read.storage);
  ReadControls(reader, read.controls);
  PALMSHED_TRY_VOID(reader.Finish());
  return read;
}

}  // namespace palmshed::model
