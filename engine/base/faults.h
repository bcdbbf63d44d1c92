// Deliberate defects, so that tests can show that they would notice them. A build with
// PALMSHED_FAULTS (test programs only, never installed) switches on those that the environment
// variable PALMSHED_FAULT names, comma-separated; in every other build they do not exist.
#pragma once

#include <string_view>

#ifdef PALMSHED_FAULTS
#include <cstdlib>
#endif

namespace palmshed {

#ifdef PALMSHED_FAULTS
inline std::string_view Faults() {
  const char* variable = std::getenv("PALMSHED_FAULT");
  return variable == nullptr ? "" : variable;
}
inline bool Faulty(std::string_view fault) {
  std::string_view rest = Faults();
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find(','));
    if (name == fault) return true;
    rest.remove_prefix(name.size() == rest.size() ? name.size() : name.size() + 1);
  }
  return false;
}
#else
constexpr std::string_view Faults() { return {}; }
constexpr bool Faulty(std::string_view) { return false; }
#endif

}  // namespace palmshed
