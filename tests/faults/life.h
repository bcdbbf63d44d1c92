// A host program's life with a sandbox, from which faults and kills are to be survived.
#pragma once

#include <chrono>
#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "faults/course.h"
#include "palmshed/palmshed.h"

namespace palmshed::tests {

/// What a sandbox is made by, and with.
struct Life {
  std::string_view name;
  bool launched = false;  ///< By a launcher; else by the engine itself.
  bool limited = false;   ///< With every limit.
  Storage storage = Storage::kDisk;
  bool asks = false;      ///< Runs no program of its own, but asks what the engine is capable of.
  bool filtered = false;  ///< Where an ordinary user is refused namespaces.
  bool feeds = false;     ///< Runs programs that wait for input, of which one has a terminal.
  bool files = false;     ///< Sees files of the host, and moves trees in and out.

  /// Whether there is anything of its own in a phase.
  constexpr bool Has(Phase phase) const { return (!asks && !feeds) || phase == Phase::kExec; }
  /// Whether this process can lead it.
  bool IsPossible() const;

  friend void PrintTo(const Life& life, std::ostream* out) { *out << life.name; }
};

inline constexpr Life kLives[] = {{.name = "direct"},
                                  {.name = "limited", .limited = true},
                                  {.name = "launched", .launched = true},
                                  {.name = "memory", .storage = Storage::kMemory},
                                  {.name = "loop", .storage = Storage::kLoop},
                                  {.name = "asking", .asks = true},
                                  {.name = "filtered", .filtered = true},
                                  {.name = "feeding", .feeds = true},
                                  {.name = "files", .launched = true, .files = true}};

/// How much input the programs of a life that feeds are given: on a terminal, and through a pipe
/// that does not hold all of it.
inline constexpr std::size_t kTyped = 2;
inline constexpr std::size_t kFed = 300'000;

/// How many rounds a life has.
struct Rounds {
  std::size_t usual;  ///< In the run of every day.
  std::size_t most;   ///< Where it has more steps than anybody has time for.
};
/// `usual` is for the plainest life.
Rounds RoundsOf(const Life& life, std::size_t usual);

/// How long one call of it may take.
std::chrono::seconds PatienceWith(const Life& life);

/// What it needs of the host: something to be kept away from, which has to stay until its end.
struct Surroundings {
  std::string workspaces;  ///< The engine's directory.
  std::string secret;      ///< A file that every user of the host may read.
  std::string port;        ///< Of a TCP server on 127.0.0.1.
  std::string probe;       ///< The content of the probe.
  std::string shown;       ///< A directory for a sandbox to see, with one file, "file".
};

/// Lives it, and reports each outcome. With `forks` it leaves a process with copies of all its
/// descriptors.
void Live(const Life& life, const Surroundings& surroundings, const Progress& progress, bool forks);

/// What a life's report says of the programs that ran and of what the engine is capable of, when
/// nothing was in the way.
std::vector<std::string> RunsOf(const std::vector<std::string>& report);

struct Expectation {
  std::vector<std::string> runs;  ///< Of a life with nothing in its way.
  bool maybe_other_way = false;  ///< The host has refused something, so that another way was taken.
  bool maybe_killed = false;     ///< What was killed may have been about to be a program.
};

/// What in a report is wrong, or "": every call has either done what it does when nothing is in its
/// way, or said clearly why not; and afterwards the engine works.
std::string Judge(const Course& course, const Expectation& expected);

}  // namespace palmshed::tests
