// A thread for work that may block, such as deleting files.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace palmshed {

/// Runs tasks one after another on a thread of its own, which starts with the first task and blocks
/// every signal. Any thread.
class Worker {
 public:
  Worker() = default;
  ~Worker();  ///< As Finish.
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Queues `task`, which never runs on the calling thread: callers hold locks that tasks take.
  /// While no thread can be had it waits for the next Post, or for Finish.
  void Post(std::move_only_function<void()> task);
  /// Runs what is still queued, then joins. Tasks that come later are let go of and do not run.
  void Finish();

 private:
  void Serve();

  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<std::move_only_function<void()>> tasks_;
  bool stopping_ = false;
  std::thread thread_;
};

/// Starts a thread that blocks every signal: the host program's signals are its own. An
/// unjoinable thread means that none could be had.
std::thread StartQuietThread(const char* name, std::function<void()> body);

}  // namespace palmshed
