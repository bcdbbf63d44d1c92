#include "base/loop.h"

#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/descriptor_base.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>
#include <cerrno>
#include <chrono>
#include <expected>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"
#include "base/worker.h"
#include "palmshed/error.h"

namespace palmshed {
namespace {

namespace asio = boost::asio;

/// Re-arms one wait on a descriptor for as long as the owner lives. `alive_` outlives the Watch in
/// handlers that are already queued, which then do nothing.
class AsioWatch final : public Loop::Watch {
 public:
  AsioWatch(asio::io_context& context, BorrowedFd fd, asio::posix::descriptor_base::wait_type type,
            std::function<void()> ready)
      : shared_(std::make_shared<Shared>(context, fd, type, std::move(ready))) {
    Arm(shared_);
  }
  ~AsioWatch() override {
    shared_->alive = false;
    (void)shared_->descriptor.release();  // The owner closes the descriptor.
  }
  AsioWatch(const AsioWatch&) = delete;
  AsioWatch& operator=(const AsioWatch&) = delete;

 private:
  struct Shared {
    Shared(asio::io_context& context, BorrowedFd fd,
           asio::posix::descriptor_base::wait_type wait_type, std::function<void()> callback)
        : descriptor(context, fd), type(wait_type), ready(std::move(callback)) {}
    asio::posix::stream_descriptor descriptor;
    asio::posix::descriptor_base::wait_type type;
    std::function<void()> ready;
    bool alive = true;
  };

  static void Arm(const std::shared_ptr<Shared>& shared) {
    shared->descriptor.async_wait(shared->type, [shared](const boost::system::error_code& error) {
      if (!shared->alive || error == asio::error::operation_aborted) return;
      shared->ready();
      if (shared->alive) Arm(shared);
    });
  }

  std::shared_ptr<Shared> shared_;
};

class AsioTimer final : public Loop::Timer {
 public:
  AsioTimer(asio::io_context& context, std::chrono::nanoseconds delay,
            std::function<void()> expired)
      : timer_(context, delay), alive_(std::make_shared<bool>(true)) {
    timer_.async_wait(
        [alive = alive_, expired = std::move(expired)](const boost::system::error_code& error) {
          if (!error && *alive) expired();
        });
  }
  ~AsioTimer() override { *alive_ = false; }
  AsioTimer(const AsioTimer&) = delete;
  AsioTimer& operator=(const AsioTimer&) = delete;

 private:
  asio::steady_timer timer_;
  std::shared_ptr<bool> alive_;
};

class AsioLoop final : public Loop {
 public:
  AsioLoop() : context_(1), work_(asio::make_work_guard(context_)) {}
  ~AsioLoop() override {
    work_.reset();
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }
  AsioLoop(const AsioLoop&) = delete;
  AsioLoop& operator=(const AsioLoop&) = delete;

  bool Start() {
    thread_ = StartQuietThread("palmshed", [this] { (void)context_.run(); });
    return thread_.joinable();
  }

  void Post(std::move_only_function<void()> task) override {
    asio::post(context_, [task = std::move(task)]() mutable { task(); });
  }

  void Run(const std::function<void()>& task) override {
    if (InLoop()) return task();
    std::promise<void> done;
    Post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }

  bool InLoop() const override { return std::this_thread::get_id() == thread_.get_id(); }

  Result<std::unique_ptr<Watch>> WatchReadable(BorrowedFd fd,
                                               std::function<void()> ready) override {
    return MakeWatch(fd, asio::posix::descriptor_base::wait_read, std::move(ready));
  }
  Result<std::unique_ptr<Watch>> WatchWritable(BorrowedFd fd,
                                               std::function<void()> ready) override {
    return MakeWatch(fd, asio::posix::descriptor_base::wait_write, std::move(ready));
  }
  std::unique_ptr<Timer> After(std::chrono::nanoseconds delay,
                               std::function<void()> expired) override {
    return std::make_unique<AsioTimer>(context_, delay, std::move(expired));
  }

 private:
  Result<std::unique_ptr<Watch>> MakeWatch(BorrowedFd fd,
                                           asio::posix::descriptor_base::wait_type type,
                                           std::function<void()> ready) {
    try {
      return std::make_unique<AsioWatch>(context_, fd, type, std::move(ready));
    } catch (const boost::system::system_error& error) {
      return std::unexpected(SysError("epoll_ctl", error.code().value()));
    }
  }

  asio::io_context context_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Loop>> Loop::Create() {
  try {
    auto loop = std::make_unique<AsioLoop>();
    if (!loop->Start()) return std::unexpected(SysError("pthread_create", EAGAIN));
    return loop;
  } catch (const boost::system::system_error& error) {
    return std::unexpected(SysError("epoll_create", error.code().value()));
  }
}

}  // namespace palmshed
