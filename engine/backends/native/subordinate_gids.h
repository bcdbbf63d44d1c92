// Whether an ordinary user can be rid of supplementary groups: newgidmap(1), a set-user-ID program
// of the distribution, maps gids that /etc/subgid gives to the user, and a namespace with such a
// map keeps setgroups(2).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "backends/native/uid_lease.h"

namespace palmshed::backends::native {

/// The first gid of the first range in `files.subgid` that belongs to `uid`, by number or by the
/// name in `files.passwd`; nullopt when there is none.
std::optional<std::uint32_t> FirstSubordinateGid(uid_t uid, const AccountFiles& files);

/// Whether this process is in a group other than its own.
bool HasExtraGroups();

}  // namespace palmshed::backends::native
