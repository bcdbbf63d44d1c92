#include "run/selftest_mounts.h"

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "run/sandbox.h"
#include "run/selftest_directory.h"
#include "run/selftest_probe.h"

namespace palmshed::run {
namespace {

constexpr std::string_view kLost = "directories of the host cannot be shown to programs";
constexpr char kReadOnly[] = "/palmshed-self-test/read-only";
constexpr char kWritable[] = "/palmshed-self-test/writable";

Result<Reports> Attempt(SandboxState& sandbox, std::span<const std::byte> probe) {
  PALMSHED_TRY_VOID(InstallProbe(sandbox, probe));
  PALMSHED_TRY(const auto execution, StartProbe(sandbox, {"mounted", kReadOnly, kWritable}));
  return ParseReports(AwaitProbe(*execution).out.bytes);
}

Result<Reports> AttemptAndDestroy(const MakeMounted& make, std::span<const std::byte> probe) {
  PALMSHED_TRY(const auto directory, SelfTestDirectory::Create());
  const std::string file = "file";
  // Only the mount, not permissions, may keep the program from writing to it.
  PALMSHED_TRY_VOID(directory.AddFile(file, 0666));
  const std::string source = directory.PathOf(file);
  PALMSHED_TRY(const auto sandbox,
               make({{.source = source, .target = kReadOnly},
                     {.source = source, .target = kWritable, .read_only = false}}));
  auto reports = Attempt(*sandbox, probe);
  PALMSHED_TRY_VOID(sandbox->Destroy());
  return reports;
}

}  // namespace

Control TestMounts(const MakeMounted& make, std::span<const std::byte> probe) {
  Control control{
      .name = "mounts", .mechanism = "detached mount trees, Landlock", .lost = std::string(kLost)};
  const auto reports = AttemptAndDestroy(make, probe);
  if (!reports) {
    control.detail = reports.error().message;
    control.remedy = reports.error().remedy;
    return control;
  }
  control.works = true;
  const auto note = [&](std::string_view name, bool must_work) {
    const auto found = reports->find(name);
    const bool tried = found != reports->end();
    if (!tried || (found->second == 0) != must_work) control.works = false;
    control.detail += control.detail.empty() ? "" : ", ";
    control.detail += std::string(name) + ": ";
    control.detail += !tried               ? "not tried"
                      : found->second == 0 ? "worked"
                                           : ::strerrorname_np(found->second);
  };
  note("read_only_read", true);
  note("read_only_write", false);
  note("writable_write", true);
  return control;
}

}  // namespace palmshed::run
