#include "base/loop.h"

#include <sys/eventfd.h>

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
#include <mutex>
#include <thread>
#include <utility>

#include "base/result.h"
#include "base/sys.h"
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

/// How long it takes at most to see that a reactor does not work.
constexpr std::chrono::seconds kReactorPatience{1};

/// Boost.Asio's reactor watches a timer and a descriptor of its own to be woken by, and does not
/// say when the kernel refuses that (epoll_ctl(2): ENOMEM, ENOSPC). So it is asked for a timer
/// once, and woken through a descriptor that the loop watches as any other.
class AsioLoop final : public Loop {
 public:
  AsioLoop() : context_(1), work_(asio::make_work_guard(context_)) {}
  ~AsioLoop() override { Finish(); }
  AsioLoop(const AsioLoop&) = delete;
  AsioLoop& operator=(const AsioLoop&) = delete;

  /// Throws where no reactor can be had: else whoever first waits for something would, and that is
  /// the loop's thread.
  Result<void> Start() {
    {
      const asio::posix::stream_descriptor makes_the_reactor(context_);
    }
    if (!HasTimers()) return std::unexpected(SysError("epoll_ctl", ENOMEM));
    PALMSHED_TRY(wake_, sys::Eventfd());
    PALMSHED_TRY(woken_, WatchReadable(wake_.get(), [this] { Drain(); }));
    thread_ = StartQuietThread("palmshed", [this] { (void)context_.run(); });
    if (!thread_.joinable()) return std::unexpected(SysError("pthread_create", EAGAIN));
    return {};
  }

  void Finish() override {
    std::move_only_function<void()> stop = [this] { context_.stop(); };
    if (!TryPost(stop, true)) return;
    if (thread_.joinable()) thread_.join();
  }

  void Post(std::move_only_function<void()> task) override {
    if (!TryPost(task, false)) task();
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
  /// False, with the task untouched, once finished. Nothing gets behind the last task.
  bool TryPost(std::move_only_function<void()>& task, bool last) {
    const std::lock_guard lock(mu_);
    if (finished_) return false;
    finished_ = last;
    asio::post(context_, [task = std::move(task)]() mutable { task(); });
    if (!InLoop()) (void)::eventfd_write(wake_.get(), 1);
    return true;
  }

  void Drain() {
    eventfd_t woken = 0;
    (void)::eventfd_read(wake_.get(), &woken);
  }

  bool HasTimers() {
    asio::steady_timer timer(context_, std::chrono::nanoseconds{});
    timer.async_wait([](const boost::system::error_code&) {});
    const bool expired = context_.run_one_for(kReactorPatience) == 1;
    return expired || context_.poll_one() == 1;  // This thread itself may have had to wait.
  }

  Result<std::unique_ptr<Watch>> MakeWatch(BorrowedFd fd,
                                           asio::posix::descriptor_base::wait_type type,
                                           std::function<void()> ready) {
    try {
      return std::make_unique<AsioWatch>(context_, fd, type, std::move(ready));
    } catch (const boost::system::system_error& error) {
      return std::unexpected(SysError("epoll_ctl", error.code().value()));
    }
  }

  std::mutex mu_;
  bool finished_ = false;
  asio::io_context context_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  UniqueFd wake_;
  std::unique_ptr<Watch> woken_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Loop>> Loop::Create() {
  try {
    auto loop = std::make_unique<AsioLoop>();
    PALMSHED_TRY_VOID(loop->Start());
    return loop;
  } catch (const boost::system::system_error& error) {
    return std::unexpected(SysError("epoll_create", error.code().value()));
  }
}

}  // namespace palmshed
