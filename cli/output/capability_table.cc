#include "cli/output/capability_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "palmshed/capabilities.h"

namespace palmshed::cli {
namespace {

void AppendLine(std::string& text, std::string_view label, std::string_view value) {
  if (!value.empty()) text += fmt::format("      {:<11} {}\n", label, value);
}

std::string FormatControl(const Control& control, std::size_t width) {
  std::string text = fmt::format("  {:<4}{:<{}}  {}\n", control.works ? "ok" : "NO", control.name,
                                 width, control.mechanism.empty() ? "-" : control.mechanism);
  AppendLine(text, "seen:", control.detail);
  if (control.works) return text;
  AppendLine(text, "without it:", control.lost);
  AppendLine(text, "to enable:", control.remedy);
  return text;
}

}  // namespace

bool IsolationWorks(const Capabilities& capabilities) {
  return capabilities.filesystem && capabilities.network_isolation &&
         capabilities.os_filesystem_isolation == Support::kSupported;
}

std::string FormatCapabilities(const Capabilities& capabilities) {
  std::size_t width = 0;
  for (const Control& control : capabilities.controls) {
    width = std::max(width, control.name.size());
  }
  std::string text = "Controls of the backend 'native', each tested on this host just now:\n";
  for (const Control& control : capabilities.controls) text += FormatControl(control, width);
  text += IsolationWorks(capabilities)
              ? "\nPrograms are isolated on this host.\n"
              : "\nPrograms cannot be isolated on this host; see the lines marked NO.\n";
  return text;
}

}  // namespace palmshed::cli
