// What some peers want to find on disk: a root directory, a container's description, settings.
#pragma once

#include <string>

namespace palmshed::benchmarks {

/// Writes into `directory`:
///   bundle/config.json   for runtimes of the Open Container Initiative: /bin/true with namespaces
///                        of its own, a read-only /usr and no network
///   bundle/rootfs/       a root directory in which /usr is to be mounted
///   settings.json        for sandbox-runtime: no network, writes below /tmp
void WritePeerFiles(const std::string& directory);

}  // namespace palmshed::benchmarks
