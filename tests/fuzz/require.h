// What must hold for every input: libFuzzer keeps the input for which it does not.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace palmshed::fuzz {

inline void Require(bool holds, const std::string& what) {
  if (holds) return;
  (void)std::fprintf(stderr, "does not hold: %s\n", what.c_str());
  std::abort();
}

}  // namespace palmshed::fuzz
