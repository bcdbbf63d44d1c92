// The one place that knows every backend. To add one: a folder beside this file, a line in the
// table, a profile of what it promises, and a page in docs.
#include <array>
#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include "backends/backend.h"
#include "backends/native/native_backend.h"
#include "palmshed/error.h"

namespace palmshed::backends {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Backend> (*make)(const BackendContext&);
};

constexpr std::array<Entry, 1> kBackends{{{"native", native::MakeNativeBackend}}};

}  // namespace

Result<std::unique_ptr<Backend>> MakeBackend(std::string_view name, const BackendContext& context) {
  std::string known;
  for (const Entry& entry : kBackends) {
    if (entry.name == name) return entry.make(context);
    known.append(known.empty() ? "" : ", ").append(entry.name);
  }
  return std::unexpected(Error{
      .code = ErrorCode::kInvalidBackend,
      .message = "backend \"" + std::string(name) + "\" does not exist; this build has: " + known,
      .field = "backend"});
}

}  // namespace palmshed::backends
