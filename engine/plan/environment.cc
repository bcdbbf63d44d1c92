#include "plan/environment.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/faults.h"
#include "palmshed/options.h"
#include "plan/plan.h"

namespace palmshed::plan {
namespace {

std::string JoinPath(const std::vector<std::string>& directories) {
  std::string path;
  for (const std::string& directory : directories) {
    if (!path.empty()) path += ':';
    path += directory;
  }
  return path;
}

}  // namespace

Env DefaultEnv(const Offer& offer) {
  const Env defaults = {{"PATH", JoinPath(offer.search_path)},
                        {"HOME", offer.workspace},
                        {"TMPDIR", offer.tmp},
                        {"LANG", "C.UTF-8"},
                        {"USER", "sandbox"},
                        {"LOGNAME", "sandbox"},
                        {"SHELL", "/bin/sh"},
                        {"PALMSHED_SANDBOX", "1"}};
  return Merge(defaults, offer.runtime_env);
}

Env TerminalEnv() { return {{"TERM", "xterm-256color"}}; }

Env Merge(const Env& base, const Env& top) {
  Env merged;
  std::map<std::string, std::size_t, std::less<>> places;
  const auto put = [&](const std::pair<std::string, std::string>& variable) {
    const auto [place, is_new] = places.try_emplace(variable.first, merged.size());
    if (is_new) return merged.push_back(variable);
    merged[place->second].second = variable.second;
  };
  std::ranges::for_each(base, put);
  std::ranges::for_each(top, put);
  return merged;
}

std::string_view Lookup(const Env& env, std::string_view name) {
  const auto found = std::ranges::find(
      env, name, [](const auto& variable) { return std::string_view(variable.first); });
  return found == env.end() ? std::string_view() : std::string_view(found->second);
}

std::vector<std::string> Flatten(const Env& env) {
  std::vector<std::string> strings;
  strings.reserve(env.size());
  for (const auto& [name, value] : env) {
    strings.push_back(std::string(name).append("=").append(value));
  }
  for (char** at = Faulty("inherit-env") ? environ : nullptr; at != nullptr && *at != nullptr;
       ++at) {
    strings.emplace_back(*at);
  }
  return strings;
}

}  // namespace palmshed::plan
