// Whether a command works here at all.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace palmshed::benchmarks {

/// Runs a command in a session of its own, ended after `limit`. Empty when it exited with 0, else
/// the reason, in the command's own words where it had any.
std::string Trial(const std::vector<std::string>& argv, std::chrono::milliseconds limit);

/// Why a command did not exit with 0: what it `said`, in one line that fits into a sentence, or its
/// wait status.
std::string WhyEnded(int status, std::string said);

/// The program of that name on PATH, or in the directories for administrators; empty when there is
/// none.
std::string OnPath(const std::string& name);

}  // namespace palmshed::benchmarks
