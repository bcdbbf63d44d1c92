// What an engine tells its observer while it works: identifiers and limits, never command text,
// environment values, file contents or output.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace palmshed {
inline namespace v1 {

/// One event. Names: backend.init, exec.start, exec.end, resource.enforced, backend.destroy,
/// backend.reap, network.decision.
struct Event {
  std::string name{};                                         ///< As listed above.
  std::chrono::system_clock::time_point time{};               ///< Wall clock.
  std::string sandbox{};                                      ///< `sbx_...`; empty when none.
  std::string execution{};                                    ///< `exec_...`; empty when none.
  std::vector<std::pair<std::string, std::string>> fields{};  ///< Further details.
};

}  // namespace v1
}  // namespace palmshed
