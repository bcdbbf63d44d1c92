#include "faults/rounds.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "faults/course.h"
#include "faults/errors.h"
#include "faults/life.h"
#include "palmshed/palmshed.h"
#include "support/eventually.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/residue.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

std::string FromEnvironment(const char* name) {
  const char* const text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no thread yet
  return text == nullptr ? "" : text;
}

/// Nobody accepts: whoever connects has been where he must not be.
int ListenOnLoopback() {
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(server, 16) != 0) {
    throw std::system_error(errno, std::generic_category(), "a server on the loopback");
  }
  return server;
}

std::string PortOf(int server) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  (void)::getsockname(server, reinterpret_cast<sockaddr*>(&address), &size);
  return std::to_string(ntohs(address.sin_port));
}

}  // namespace

std::string Step::Name() const {
  return std::string(ToString(phase)) + "/" + std::string(ToString(role)) + "/" +
         (call ? NameOf(*call) + "/" : "") + std::to_string(ordinal);
}

bool Countdown::Comes(const Call& call) {
  const bool counts = call.phase == step_.phase && call.role == step_.role &&
                      (!step_.call || *step_.call == call.number);
  return counts && left_ > 0 && --left_ == 0;
}

std::vector<std::string> Chosen(const std::vector<std::string>& all, const Rounds& rounds) {
  const std::string only = FromEnvironment("PALMSHED_FAULT_STEP");
  if (!only.empty()) {
    return std::ranges::count(all, only) == 0 ? std::vector<std::string>{}
                                              : std::vector<std::string>{only};
  }
  const std::string wanted = FromEnvironment("PALMSHED_FAULTS");
  std::size_t most = rounds.usual;
  if (!wanted.empty()) most = wanted == "all" ? rounds.most : std::stoul(wanted);
  if (all.size() <= most) return all;
  std::vector<std::string> chosen;
  // From the middle of each part: neither the first nor the last step is more telling than others.
  for (std::size_t i = 0; i < most; ++i) {
    chosen.push_back(all[(2 * i + 1) * all.size() / (2 * most)]);
  }
  return chosen;
}

std::string Alone(const std::string& step) {
  const ::testing::TestInfo* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  return "alone: PALMSHED_FAULT_STEP=" + step +
         " faults_test --gtest_filter=" + test->test_suite_name() + "." + test->name();
}

RoundsTest::RoundsTest() : server_(ListenOnLoopback()) {
  surroundings_ = {.workspaces = root_.path(),
                   .secret = outside_.AddFile("secret.txt", "canary"),
                   .port = PortOf(server_),
                   .probe = Slurp(ProbePath()),
                   .shown = shown_.path()};
  shown_.AddFile("file", "of the host ");
}

RoundsTest::~RoundsTest() { ::close(server_); }

std::string RoundsTest::WantOf(const Life& life) {
  if (!life.IsPossible()) {
    return life.filtered ? "an ordinary user without namespaces leads it"
                         : "only root has loop devices, where there are any";
  }
  return Recorded(life).calls.empty() ? "system calls cannot be watched here" : "";
}

const Course& RoundsTest::Recorded(const Life& life) {
  static std::map<std::string_view, Course> recorded;
  const auto found = recorded.find(life.name);
  if (found != recorded.end()) return found->second;
  auto course = Run(life, [](const Call&, Roles&) { return 0; });
  return recorded[life.name] = course ? *std::move(course) : Course{};
}

std::optional<Course> RoundsTest::Run(const Life& life, const AtCall& at_call, bool forks) {
  return RunHost([&](const Progress& progress) { Live(life, surroundings_, progress, forks); },
                 at_call, {.forks = forks, .patience = PatienceWith(life)});
}

std::vector<std::string> RoundsTest::Left() const {
  std::vector<std::string> left = Residue::Snapshot().Since(before_);
  for (const std::string& name : TreeOf(root_.path())) left.push_back("file: " + name);
  return left;
}

bool RoundsTest::IsClean() const { return Left().empty() && Descendants().empty(); }

std::string RoundsTest::Collect(const Life& life) {
  ChildHost next([&](ChildHost& self) {
    std::string answer;
    {
      Engine engine = MakeEngine(root_);
      // What a self-test has left is the next one's to remove.
      if (life.asks) (void)Must(engine.GetCapabilities("native", true));
      // With a limit: who asks for none does not look at groups.
      Sandbox sandbox = MakeSandboxIn(engine, {.pids = 32, .degraded = {"pids"}});
      answer = ExecShell(sandbox, "echo healthy").out.bytes;
      Must(sandbox.Destroy());
    }
    self.Tell(answer);
  });
  if (next.Hear() != "healthy") return "the next engine does not work";
  if (Eventually([&] { return IsClean(); })) return "";
  return ::testing::PrintToString(Left()) + ::testing::PrintToString(Descendants());
}

}  // namespace palmshed::tests
