#include "benchmarks/die.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace palmshed::benchmarks {

void Die(const std::string& why) {
  fmt::print(stderr, "benchmark: {}\n", why);
  std::exit(1);
}

void DieErrno(const std::string& call) { Die(call + ": " + std::strerror(errno)); }

}  // namespace palmshed::benchmarks
