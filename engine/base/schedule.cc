#include "base/schedule.h"

#include <expected>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/worker.h"
#include "palmshed/error.h"

namespace palmshed {

Schedule::~Schedule() { Finish(); }

Result<void> Schedule::Start() {
  const std::lock_guard lock(mu_);
  if (!threads_.empty() || AddThreadLocked()) return {};
  return std::unexpected(
      Error{.code = ErrorCode::kOverloaded, .message = "no thread can be had", .op = "clone"});
}

void Schedule::At(Clock::time_point due, Task task) {
  const std::lock_guard lock(mu_);
  if (stopping_) return;
  tasks_.emplace(due, std::move(task));
  AddThreadIfNoneWaitsLocked();
  changed_.notify_one();
}

void Schedule::AddThreadIfNoneWaitsLocked() {
  // One that waits for a later task takes an earlier one just as well.
  if (idle_ == 0 && threads_.size() < most_threads_) (void)AddThreadLocked();
}

bool Schedule::AddThreadLocked() {
  std::thread thread = StartQuietThread("palmshed-timed", [this] { Serve(); });
  if (!thread.joinable()) return false;
  threads_.push_back(std::move(thread));
  return true;
}

void Schedule::Finish() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mu_);
    stopping_ = true;
    threads.swap(threads_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

void Schedule::Serve() {
  std::unique_lock lock(mu_);
  while (true) {
    const bool due = !tasks_.empty() && tasks_.begin()->first <= Clock::now();
    if (due) {
      auto node = tasks_.extract(tasks_.begin());
      // This thread may have been the one that the others were left to.
      if (!stopping_ && !tasks_.empty()) AddThreadIfNoneWaitsLocked();
      lock.unlock();
      node.mapped()();
      node.mapped() = nullptr;  // What it holds must not be let go of under the lock.
      lock.lock();
      continue;
    }
    if (stopping_) return;
    ++idle_;
    if (tasks_.empty()) {
      changed_.wait(lock);
    } else {
      // A copy: it is read again after the wait, when another thread may have taken the task.
      const Clock::time_point due_next = tasks_.begin()->first;
      changed_.wait_until(lock, due_next);
    }
    --idle_;
  }
}

}  // namespace palmshed
