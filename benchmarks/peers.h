// What the engine is compared with, and the names that tables and files use.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace palmshed::benchmarks {

// The floor (V), and its like for the static program.
inline constexpr char kFloor[] = "vfork+exec";
inline constexpr char kNoopFloor[] = "vfork+exec noop";
// The peer (B).
inline constexpr char kPeer[] = "bubblewrap";

inline constexpr char kExec[] = "exec";
inline constexpr char kLimitedExec[] = "exec, every limit";  // Beside `exec`.
inline constexpr char kNoopExec[] = "exec noop";
inline constexpr char kOneShot[] = "create+exec+destroy";
inline constexpr char kCreate[] = "create";
inline constexpr char kDestroy[] = "destroy";
inline constexpr char kCommandLine[] = "palmshed run";
inline constexpr char kNewEngine[] = "engine";
inline constexpr char kColdCreate[] = "first create";
inline constexpr char kFirstCreate[] = "engine+first create";
// A program that takes its input from a file and leaves its output in one.
inline constexpr char kWorkload[] = "workload";
inline constexpr char kWorkloadFloor[] = "workload, no sandbox";

/// The program that everything runs: dynamically linked, prints nothing, does nothing.
inline constexpr char kProgram[] = "/bin/true";

/// Another sandbox, told to do the same job: `kProgram` with its own pid, network, IPC, UTS and
/// mount namespaces, a read-only /usr and no network. What it lacks of that stands in the table.
struct Peer {
  std::string name;
  std::vector<std::string> command{};   ///< Empty: absent.
  std::string absent{};                 ///< Why, when it is.
  std::vector<std::string> failures{};  ///< Of its runs while it was measured, in words.
};

/// The peers of the table in peers.cc. Each has run once before it is timed.
class Peers {
 public:
  /// Looks for them on PATH and tries them. Only `names`, unless that is empty.
  explicit Peers(const std::vector<std::string>& names = {});
  /// Ends what those needed that run in something that stays.
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  std::span<const Peer> all() const { return peers_; }
  /// Empty when it is absent.
  std::vector<std::string> CommandOf(const std::string& name) const;

 private:
  std::vector<Peer> peers_;
  std::vector<std::vector<std::string>> endings_;
};

/// Programs of ours that a comparison needs; an empty path means that it is not there.
struct Programs {
  std::string palmshed;
  std::string noop;
};

}  // namespace palmshed::benchmarks
