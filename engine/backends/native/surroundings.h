// Everything of this host and this thread that decides what the native backend can enforce, as far
// as it can be read: whoever finds the same facts may believe the self-test of another process.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "backends/backend.h"
#include "backends/native/state_paths.h"
#include "palmshed/options.h"

namespace palmshed::backends::native {

/// Facts by name; what is not there is "absent".
using Facts = std::map<std::string, std::string, std::less<>>;

/// What of a /proc/<pid>/status bears on what a process may do: ids, groups and capabilities.
/// nullopt where that cannot be known: no new privileges come with rules that nobody can read back
/// (Landlock, a filter of system calls), and a filter may be there without.
std::optional<Facts> FactsOfStatus(std::string_view status);
/// The mounts that groups, namespaces and a fresh proc depend on, of a /proc/<pid>/mountinfo.
std::string MountsThatMatter(std::string_view mountinfo);
/// As one text: no two different sets of facts have the same.
std::string Join(const Facts& facts);

/// Of the calling thread.
std::optional<Surroundings> SurveyHost(const HostEnvironment& host, const EngineOptions& options);

}  // namespace palmshed::backends::native
