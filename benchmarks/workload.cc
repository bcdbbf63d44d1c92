#include "benchmarks/workload.h"

#include <fmt/core.h>
#include <unistd.h>

#include <fstream>
#include <ios>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/die.h"
#include "benchmarks/peers.h"
#include "benchmarks/schedule.h"
#include "benchmarks/scratch.h"
#include "benchmarks/spawn.h"
#include "palmshed/palmshed.h"

namespace palmshed::benchmarks {
namespace {

constexpr char kInterpreter[] = "/usr/bin/python3";
constexpr char kCopy[] =
    "import sys; open(sys.argv[2], 'wb').write(open(sys.argv[1], 'rb').read())";

// -I: the variables of either environment make no difference.
std::vector<std::string> Copying(const std::string& from, const std::string& to) {
  return {kInterpreter, "-I", "-c", kCopy, from, to};
}

void Expect(const std::string& got, const std::string& wanted) {
  if (got != wanted) Die("the workload's copy is not what was written");
}

Variant WithoutSandbox(const std::string& content) {
  const std::string directory = ScratchDirectory();
  const std::string from = directory + "/in";
  const std::string to = directory + "/out";
  const auto command = std::make_shared<const Command>(Copying(from, to));
  return {.name = kWorkloadFloor, .floor = kWorkloadFloor, .run = [=] {
            std::ofstream(from, std::ios::binary) << content;
            command->Run();
            std::ifstream copy(to, std::ios::binary);
            Expect({std::istreambuf_iterator<char>(copy), {}}, content);
          }};
}

Variant InSandbox(Sandbox& sandbox, const std::string& content) {
  return {.name = kWorkload, .floor = kWorkloadFloor, .run = [&sandbox, content] {
            Must(sandbox.WriteFile("in", content));
            if (!Must(sandbox.Run(Copying("in", "out"))).ok()) Die("the workload failed");
            Expect(Must(sandbox.ReadFile("out")), content);
          }};
}

}  // namespace

std::vector<Variant> WorkloadVariants(Sandbox& sandbox) {
  if (::access(kInterpreter, X_OK) != 0) {
    fmt::print("{}: absent, there is no {}\n", kWorkload, kInterpreter);
    return {};
  }
  const std::string content(1024, 'x');
  return {WithoutSandbox(content), InSandbox(sandbox, content)};
}

}  // namespace palmshed::benchmarks
