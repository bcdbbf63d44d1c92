// A few threads for work that may block and is due at a time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "palmshed/error.h"

namespace palmshed {

/// Runs each task once it is due, those that are due first. Threads come with the tasks that need
/// them and block every signal. Any thread.
class Schedule {
 public:
  using Clock = std::chrono::steady_clock;
  using Task = std::move_only_function<void()>;

  explicit Schedule(std::size_t most_threads) : most_threads_(most_threads) {}
  ~Schedule();  ///< As Finish.
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  /// Makes sure that tasks will be run. OVERLOADED where no thread can be had.
  Result<void> Start();
  void At(Clock::time_point due, Task task);
  void Now(Task task) { At(Clock::now(), std::move(task)); }
  /// Runs what is due, forgets the rest, then joins. Tasks that come later are forgotten too. Not
  /// from a task.
  void Finish();

 private:
  void AddThreadIfNoneWaitsLocked();
  bool AddThreadLocked();
  void Serve();

  const std::size_t most_threads_;
  std::mutex mu_;
  std::condition_variable changed_;
  std::multimap<Clock::time_point, Task> tasks_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace palmshed
