// On what a measurement was made.
#pragma once

#include <string>

namespace palmshed::benchmarks {

struct Machine {
  std::string cpu;
  unsigned cores = 0;
  std::string kernel;
  std::string distribution;
  std::string user;  ///< "root" or "ordinary user"
};

Machine ThisMachine();

}  // namespace palmshed::benchmarks
