// What the driver does for each operation of the protocol, over the public C++ API and nothing
// else.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "drivers/cpp/request.h"
#include "palmshed/palmshed.h"

namespace palmshed::conformance {

/// Its methods may be called from any thread at the same time. An answer is the `ok` document as
/// text.
class Operations {
 public:
  static Result<std::unique_ptr<Operations>> Create();
  explicit Operations(Engine engine);

  Result<std::string> CarryOut(const Request& request);
  /// Destroys every sandbox, so that nothing waits any more.
  void DestroyAll();

 private:
  using Answer = Result<std::string>;

  Answer Hello(const Request& request);
  Answer GetCapabilities(const Request& request);
  Answer Create(const Request& request);
  Answer Exec(const Request& request);
  Answer Wait(const Request& request);
  Answer Stream(const Request& request);
  Answer Status(const Request& request);
  Answer Stdin(const Request& request);
  Answer Signal(const Request& request);
  Answer Resize(const Request& request);
  Answer Cancel(const Request& request);
  Answer Write(const Request& request);
  Answer Read(const Request& request);
  Answer Upload(const Request& request);
  Answer Download(const Request& request);
  Answer ArchiveUp(const Request& request);
  Answer ArchiveDown(const Request& request);
  Answer List(const Request& request);
  Answer Stat(const Request& request);
  Answer MakeDirectory(const Request& request);
  Answer Remove(const Request& request);
  Answer Move(const Request& request);
  Answer Chmod(const Request& request);
  Answer Destroy(const Request& request);

  /// What a file operation is about.
  struct Place {
    std::shared_ptr<Sandbox> sandbox;
    std::string path;
  };

  Result<std::shared_ptr<Sandbox>> FindSandbox(const Request& request);
  Result<Place> FindPlace(const Request& request);
  Result<Execution> FindExecution(const Request& request);

  Engine engine_;
  std::mutex mu_;
  // Both by id, and kept after their end: what is gone still answers, with an error or a result.
  std::map<std::string, std::shared_ptr<Sandbox>, std::less<>> sandboxes_;
  std::map<std::string, Execution, std::less<>> executions_;
};

}  // namespace palmshed::conformance
