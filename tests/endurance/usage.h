// What this process, and what it has started, takes of the host.
#pragma once

#include <cstddef>
#include <iosfwd>

namespace palmshed::tests {

struct Usage {
  std::size_t descriptors = 0;
  std::size_t threads = 0;
  std::size_t processes = 0;    ///< Below this one.
  std::size_t memory_kib = 0;   ///< Anonymous, of this process.
  std::size_t helpers_kib = 0;  ///< Anonymous, of those below, together.
  std::size_t mounts = 0;       ///< In the mount namespaces of this process and of those below.
  std::size_t cgroups = 0;      ///< Of the host, that carry our name.

  static Usage Now();
  friend std::ostream& operator<<(std::ostream& out, const Usage& usage);
};

}  // namespace palmshed::tests
