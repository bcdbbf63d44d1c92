#include "backends/native/subordinate_gids.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "backends/native/uid_lease.h"
#include "base/sys.h"

namespace palmshed::backends::native {
namespace {

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<std::uint32_t> Number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// passwd(5). Accounts that are kept elsewhere have no subordinate ids by name here.
std::string NameOf(uid_t uid, const std::string& passwd) {
  for (const std::string_view line : Split(passwd, '\n')) {
    const auto fields = Split(line, ':');
    if (fields.size() > 2 && Number(fields[2]) == uid) return std::string(fields[0]);
  }
  return {};
}

}  // namespace

std::optional<std::uint32_t> FirstSubordinateGid(uid_t uid, const AccountFiles& files) {
  const auto passwd = sys::ReadFile(files.passwd);
  const auto subgid = sys::ReadFile(files.subgid);
  if (!subgid) return std::nullopt;
  const std::string name = passwd ? NameOf(uid, *passwd) : std::string();
  for (const std::string_view line : Split(*subgid, '\n')) {
    const auto fields = Split(line, ':');
    if (fields.size() != 3) continue;
    const bool ours = (!name.empty() && fields[0] == name) || Number(fields[0]) == uid;
    const auto first = Number(fields[1]);
    if (ours && first && Number(fields[2]).value_or(0) > 0) return first;
  }
  return std::nullopt;
}

bool HasExtraGroups() {
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0)));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  // A failure counts as yes: the list may have grown meanwhile.
  return count < 0 || std::any_of(
                          groups.begin(), groups.begin() + count,
                          [](gid_t group) { return group != ::getegid(); });
}

}  // namespace palmshed::backends::native
