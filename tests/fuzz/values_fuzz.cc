// Small texts with a grammar of their own: paths, what the program's flags take, /proc.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/values/duration.h"
#include "cli/values/environment.h"
#include "cli/values/numbers.h"
#include "cli/values/paths.h"
#include "fuzz/require.h"
#include "kernel/process_table.h"
#include "palmshed/error.h"
#include "palmshed/options.h"
#include "workspace/path.h"

namespace palmshed::fuzz {
namespace {

void RequirePlainPath(std::string_view text) {
  using workspace::SandboxPath;
  const auto path = SandboxPath::Parse(text);
  if (!path) return Require(!path.error().message.empty(), "a refusal says why");
  const std::string plain = path->Text();
  Require(!plain.empty() && plain.front() != '/', "a path of a workspace is relative");
  Require(plain.find('\0') == plain.npos, "a path has no NUL");
  Require(plain.find("//") == plain.npos, "a plain path has no empty component");
  const auto again = SandboxPath::Parse(plain);
  Require(again && again->Text() == plain, "a plain path stays as it is");
  const std::string whole =
      path->parent() == "." ? path->name() : path->parent() + "/" + path->name();
  Require(path->IsRoot() ? plain == "." : plain == whole, "a path is its parent and its name");
}

/// Where a link leads as it is written, told in another way.
void RequireThatLinksStay(std::string_view target) {
  constexpr int kDepth = 3;
  int level = kDepth;
  int lowest = kDepth;
  for (std::size_t at = 0; at <= target.size();) {
    const std::size_t end = std::min(target.find('/', at), target.size());
    const std::string_view component = target.substr(at, end - at);
    if (component == "..") lowest = std::min(lowest, --level);
    if (component != ".." && component != "." && !component.empty()) ++level;
    at = end + 1;
  }
  const bool leaves = target.starts_with('/') || lowest < 0;
  Require(workspace::LinkStaysInside(kDepth, target) == !leaves, "a link that leaves is told");
}

void RequireMount(std::string_view text) {
  const auto mount = cli::ParseVolume(text, "/home/user");
  if (!mount) return;
  Require(mount->source.starts_with('/'), "a mount's source is absolute");
  Require(!mount->target.empty(), "a mount has a target");
  Require(mount->read_only || text.ends_with(":rw"), "a mount is read-only unless asked");
}

/// A program names itself as it likes: up to fifteen bytes, but here any number of them.
void RequireThatNamesDeceiveNobody(std::string_view name) {
  const std::string stat =
      "42 (" + std::string(name) + ") S 7 42 9 0 -1 0 0 0 0 0 1 2 3 4 20 0 5 0 1234 0 0\n";
  const auto read = kernel::ParseProcessStat(stat);
  Require(read.has_value(), "a process is read whatever its name");
  Require(read->id == kernel::ProcessId{.pid = 42, .started = 1234}, "it is that process");
  Require(read->parent == 7 && read->session == 9 && read->state == 'S' && read->threads == 5,
          "what it is does not depend on its name");
}

}  // namespace
}  // namespace palmshed::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace palmshed;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fuzz::RequirePlainPath(text);
  fuzz::RequireThatLinksStay(text);
  fuzz::RequireMount(text);
  fuzz::RequireThatNamesDeceiveNobody(text);
  (void)kernel::ParseProcessStat(text);
  (void)cli::ParseCopy(text);
  (void)cli::ParseDuration(text, "--timeout");
  (void)cli::ParseCores(text, "--cpus");
  (void)cli::ParseCount(text, "--pids-limit");
  (void)cli::ParseEnv({std::string(text)}, [](const std::string&) { return std::nullopt; });
  return 0;
}
