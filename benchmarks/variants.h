// The things that are timed.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/peers.h"
#include "benchmarks/schedule.h"
#include "palmshed/palmshed.h"

namespace palmshed::benchmarks {

/// The result of a run that must have worked.
void MustRun(Sandbox& sandbox, const std::string& program);

/// Owns the engine and the live sandbox that the variants use.
class Variants {
 public:
  /// Absent programs leave their variants out.
  static std::unique_ptr<Variants> Create(const Programs& programs, const Peers& peers);

  std::span<const Variant> all() const { return variants_; }
  /// Names of those that this host cannot run; it has been said why.
  const std::vector<std::string>& absent() const { return absent_; }
  /// Takes out all but `names` and what they are compared with. Ends the benchmark for unknown
  /// names.
  void KeepOnly(const std::vector<std::string>& names);

 private:
  Variants(Engine engine, Sandbox live) : engine_(std::move(engine)), live_(std::move(live)) {}
  void AddFloorAndPeers(const Programs& programs, const Peers& peers);
  void AddNoop(const std::string& noop);
  void AddExecutions();
  void AddLives();
  void AddStarts();

  Engine engine_;
  Sandbox live_;
  std::unique_ptr<Sandbox> limited_;    ///< Null: not every limit is to be had here.
  std::unique_ptr<Sandbox> fresh_;      ///< Of the variant that is being timed.
  std::unique_ptr<Engine> new_engine_;  ///< As above.
  std::vector<std::string> peers_;      ///< Names of those among the variants.
  std::vector<Variant> variants_;
  std::vector<std::string> absent_;
};

}  // namespace palmshed::benchmarks
