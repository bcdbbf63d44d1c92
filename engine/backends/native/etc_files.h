// What /etc holds in a private view: files made for the sandbox, and files of the host that are
// public and that programs fail without.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "palmshed/options.h"

namespace palmshed::backends::native {

/// Something of /etc; `path` is absolute.
struct EtcFile {
  enum class Kind : std::uint8_t { kMade, kLink, kShown, kShownDirectory };
  Kind kind;
  std::string path;
  std::string content{};  ///< kMade: the content; kLink: the target.
};

/// Files made for the sandbox, the same on every host but for resolv.conf, which is a copy of the
/// host's where the sandbox shares its network.
std::vector<EtcFile> MadeEtcFiles(std::uint32_t uid, Network network, const std::string& host_root);

/// Those files of the host's /etc that are shown, as far as they are there.
std::vector<EtcFile> ShownEtcFiles(const std::string& host_root);

}  // namespace palmshed::backends::native
