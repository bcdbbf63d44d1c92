// Rounds of one life, each with one thing done to it at one step.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "faults/course.h"
#include "faults/life.h"
#include "support/residue.h"
#include "support/temp_dir.h"

namespace palmshed::tests {

/// The `ordinal`th call, counted from 0, of a role in a phase; of one system call, or of any.
struct Step {
  Phase phase{};
  Role role{};
  std::optional<long> call;
  std::size_t ordinal = 0;

  /// E.g. "create/init/mount/3".
  std::string Name() const;
};

/// Counts calls up to a step.
class Countdown {
 public:
  explicit Countdown(const Step& step) : step_(step), left_(step.ordinal + 1) {}
  /// True once, when the step has come.
  bool Comes(const Call& call);
  bool came() const { return left_ == 0; }

 private:
  Step step_;
  std::size_t left_;
};

/// Of all, in their order, so many that are evenly spread, the same each time; PALMSHED_FAULTS says
/// how many instead, or "all". PALMSHED_FAULT_STEP names one, which is then the only one.
std::vector<std::string> Chosen(const std::vector<std::string>& all, const Rounds& rounds);

/// How to run this test's round of a step alone.
std::string Alone(const std::string& step);

class RoundsTest : public ::testing::Test {
 protected:
  RoundsTest();
  ~RoundsTest() override;

  /// Why a life cannot be led here, or "".
  std::string WantOf(const Life& life);
  /// What a life does when nothing is in its way; recorded once for each life.
  const Course& Recorded(const Life& life);
  std::optional<Course> Run(const Life& life, const AtCall& at_call, bool forks = false);
  /// Another engine finds what is left, and removes it. What stays then, in words.
  std::string Collect(const Life& life);
  /// Whether anything is left at this moment.
  bool IsClean() const;

 private:
  std::vector<std::string> Left() const;

  const Residue before_ = Residue::Snapshot();
  const TempDir root_;
  const TempDir outside_{0755};
  const TempDir shown_{0755};
  Surroundings surroundings_;
  int server_ = -1;
};

}  // namespace palmshed::tests
