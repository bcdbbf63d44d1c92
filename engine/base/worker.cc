#include "base/worker.h"

#include <sys/prctl.h>

#include <csignal>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace palmshed {

namespace {

/// An unjoinable thread when none could be had.
std::thread TryStartThread(std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error&) {
    return {};
  }
}

}  // namespace

std::thread StartQuietThread(const char* name, std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread = TryStartThread([name, body = std::move(body)] {
    (void)prctl(PR_SET_NAME, name);
    body();
  });
  (void)pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

Worker::~Worker() { Finish(); }

void Worker::Finish() {
  {
    const std::lock_guard lock(mu_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  Serve();  // What no thread could be had for.
}

void Worker::Post(std::move_only_function<void()> task) {
  const std::lock_guard lock(mu_);
  if (stopping_) return;
  tasks_.push_back(std::move(task));
  if (!thread_.joinable()) thread_ = StartQuietThread("palmshed-work", [this] { Serve(); });
  changed_.notify_all();
}

void Worker::Serve() {
  std::unique_lock lock(mu_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace palmshed
