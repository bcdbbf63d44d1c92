// What many files in a workspace cost: to put there, to run beside, and to delete.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "benchmarks/die.h"
#include "benchmarks/figure.h"
#include "benchmarks/schedule.h"
#include "benchmarks/scratch.h"
#include "benchmarks/subject.h"
#include "palmshed/palmshed.h"

namespace palmshed::benchmarks {
namespace {

namespace fs = std::filesystem;

constexpr char kCopied[] = "files, copied without a sandbox";
constexpr char kRemoved[] = "files, removed without a sandbox";
constexpr int kFilesInDirectory = 100;
// In all rounds of one variant; but three rounds there are always.
constexpr int kMostFiles = 30000;

void Expect(const std::error_code& error) {
  if (error) Die("files: " + error.message());
}

/// `count` files of 100 bytes, 100 in a directory.
fs::path MakeTree(int count) {
  const fs::path top = fs::path(ScratchDirectory()) / "tree";
  const std::string content(100, 'x');
  for (int i = 0; i < count; ++i) {
    const fs::path directory = top / std::to_string(i / kFilesInDirectory);
    if (i % kFilesInDirectory == 0) {
      std::error_code error;
      fs::create_directories(directory, error);
      Expect(error);
    }
    std::ofstream(directory / std::to_string(i)) << content;
  }
  return top;
}

/// Whole lives of trees, in a sandbox and without one.
std::vector<Figure> Lives(const Heading& heading, int count, const fs::path& tree, Engine& engine,
                          const Settings& settings) {
  const fs::path copy = fs::path(ScratchDirectory()) / "copy";
  std::unique_ptr<Sandbox> sandbox;
  std::error_code error;
  const auto copy_tree = [&] {
    fs::copy(tree, copy, fs::copy_options::recursive, error);
    Expect(error);
  };
  const auto remove_copy = [&] {
    fs::remove_all(copy, error);
    Expect(error);
  };
  const auto create = [&] { sandbox = std::make_unique<Sandbox>(Must(engine.CreateSandbox())); };
  const auto upload = [&] { Must(sandbox->UploadFile(tree.string(), "tree")); };
  const auto destroy = [&] { Must(sandbox->Destroy()); };
  const auto create_full = [&] {
    create();
    upload();
  };
  const std::vector<Variant> variants{
      {.name = kCopied, .floor = kCopied, .run = copy_tree, .finish = remove_copy},
      {.name = kRemoved, .floor = kRemoved, .prepare = copy_tree, .run = remove_copy},
      {.name = "files, uploaded",
       .floor = kCopied,
       .prepare = create,
       .run = upload,
       .finish = destroy},
      {.name = "files, destroyed with the sandbox",
       .floor = kRemoved,
       .prepare = create_full,
       .run = destroy}};
  const Settings few{.rounds = std::min(settings.rounds, std::max(3, kMostFiles / count)),
                     .most = settings.most,
                     .small = settings.small,
                     .random = settings.random};
  return TimeFigures(heading, count, variants, few);
}

}  // namespace

std::vector<Figure> MeasureFiles(const Settings& settings) {
  const Heading lives{.measure = "workspace", .axis = "files", .unit = "us"};
  const Heading growth{.measure = "growth", .axis = "files in the workspace", .unit = "us"};
  Engine engine = Must(Engine::Create());
  std::vector<Figure> figures;
  for (const int count : {10, 1000, 10000}) {
    if (settings.small && count > 10) break;
    const fs::path tree = MakeTree(count);
    Append(figures, Lives(lives, count, tree, engine, settings));
    Sandbox full = Must(engine.CreateSandbox());
    Must(full.UploadFile(tree.string(), "tree"));
    Append(figures, CostsAt(growth, count, engine, full, settings));
    Must(full.Destroy());
  }
  return figures;
}

}  // namespace palmshed::benchmarks
