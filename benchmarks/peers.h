// What the engine is compared with, and the names that tables and files use.
#pragma once

#include <string>

namespace palmshed::benchmarks {

// The floor (V), and its like for the static program.
inline constexpr char kFloor[] = "vfork+exec";
inline constexpr char kNoopFloor[] = "vfork+exec noop";
// The peer (B).
inline constexpr char kPeer[] = "bubblewrap";

inline constexpr char kExec[] = "exec";
inline constexpr char kNoopExec[] = "exec noop";
inline constexpr char kOneShot[] = "create+exec+destroy";
inline constexpr char kCreate[] = "create";
inline constexpr char kDestroy[] = "destroy";
inline constexpr char kCommandLine[] = "palmshed run";
inline constexpr char kFirstCreate[] = "engine+first create";

/// The program that everything runs: dynamically linked, prints nothing, does nothing.
inline constexpr char kProgram[] = "/bin/true";

/// Programs that a comparison needs; an empty path means that it is not there.
struct Programs {
  std::string bubblewrap;
  std::string palmshed;
  std::string noop;
};

}  // namespace palmshed::benchmarks
