// How often the tests of this folder do what they do.
#pragma once

#include <cstdlib>
#include <string>

namespace palmshed::tests {

/// From the environment, so that the same tests make the short run and the long one.
inline int RoundsOf(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): no thread yet
  return text == nullptr ? otherwise : std::stoi(text);
}

/// Sandboxes made and destroyed in one process.
inline int Loops() { return RoundsOf("PALMSHED_LOOPS", 2000); }
/// Engines, or what they have started, that are killed.
inline int Kills() { return RoundsOf("PALMSHED_KILLS", 100); }

}  // namespace palmshed::tests
