// How an execution ended, in one sentence for people.
#pragma once

#include <string>
#include <string_view>

#include "palmshed/result.h"

namespace palmshed::cli {

/// One line about an end that the program's output does not explain.
struct Outcome {
  std::string text{};       ///< Empty: nothing needs to be said.
  bool is_failure = false;  ///< The program did not run or we failed: said in spite of --quiet.
};

/// `program` is argv[0]. `stop_signal` is the signal that made us cancel it, else 0.
Outcome DescribeOutcome(const ExecResult& result, std::string_view program, int stop_signal);

/// A program that failed after the limit on processes had refused it some: one line more. Empty:
/// nothing needs to be said.
std::string DescribeRefusals(const ExecResult& result);

}  // namespace palmshed::cli
