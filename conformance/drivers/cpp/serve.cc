#include "drivers/cpp/serve.h"

#include <unistd.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/system/error_code.hpp>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "drivers/cpp/distortion.h"
#include "drivers/cpp/operations.h"
#include "drivers/cpp/request.h"
#include "palmshed/error.h"
#include "palmshed/json.h"

namespace palmshed::conformance {
namespace {

constexpr std::size_t kDeepest = 512;

class Session {
 public:
  explicit Session(std::unique_ptr<Operations> operations) : operations_(std::move(operations)) {}

  int Run() {
    for (std::string line; std::getline(std::cin, line);) {
      boost::system::error_code failed;
      boost::json::value document = boost::json::parse(line, failed, {}, {.max_depth = kDeepest});
      if (failed || !document.is_object()) {
        std::cerr << "a line that is no request: " << failed.message() << '\n';
        return 1;
      }
      Request request(std::move(document.get_object()));
      if (request.op() == "shutdown") {
        End();
        Send(request.id(), "ok", "{}");
        return 0;
      }
      Begin(std::move(request));
    }
    End();
    return 0;
  }

 private:
  void Begin(Request request) {
    {
      const std::scoped_lock lock(mu_);
      ++open_;
    }
    std::thread([this, request = std::move(request)]() mutable {
      Answer(std::move(request));
      const std::scoped_lock lock(mu_);
      --open_;
      changed_.notify_all();
    }).detach();
  }

  void Answer(Request request) {
    const std::string op = request.op();
    if (Distorting()) DistortRequest(op, request.document());
    Result<std::string> answer = Swallows(op) ? "{}" : operations_->CarryOut(request);
    if (!answer) {
      Send(request.id(), "error", ToJson(answer.error()));
      return;
    }
    if (Distorting()) {
      boost::json::value document = boost::json::parse(*answer);
      DistortAnswer(op, document.get_object());
      answer = boost::json::serialize(document);
    }
    Send(request.id(), "ok", *answer);
  }

  void Send(std::int64_t id, std::string_view kind, std::string_view document) {
    std::string line = "{\"id\": " + std::to_string(id) + ", \"" + std::string(kind) +
                       "\": " + std::string(document) + "}\n";
    const std::scoped_lock lock(writing_);
    for (std::string_view rest = line; !rest.empty();) {
      const ssize_t size = ::write(STDOUT_FILENO, rest.data(), rest.size());
      if (size < 0) return;  // Nobody listens any more, and the end of input follows.
      rest.remove_prefix(static_cast<std::size_t>(size));
    }
  }

  /// Everything is destroyed, which ends what others wait for, and answered.
  void End() {
    operations_->DestroyAll();
    {
      std::unique_lock lock(mu_);
      changed_.wait(lock, [this] { return open_ == 0; });
    }
    operations_.reset();
  }

  std::unique_ptr<Operations> operations_;
  std::mutex mu_;
  std::condition_variable changed_;
  int open_ = 0;  // Requests without an answer.
  std::mutex writing_;
};

}  // namespace

int Serve() {
  PrepareDistortion();
  auto operations = Operations::Create();
  if (!operations) {
    std::cerr << operations.error().message << '\n';
    return 1;
  }
  std::ios::sync_with_stdio(false);
  return Session(*std::move(operations)).Run();
}

}  // namespace palmshed::conformance
