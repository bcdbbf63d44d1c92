// Build-time tool: writes the manual page, the completions and docs/cli, all made from the verbs
// and their options.
//
//   palmshed_reference install DIR     palmshed.1 and the completion scripts
//   palmshed_reference docs DIR        the pages of docs/cli
//   palmshed_reference check DIR       fails when the pages in DIR are not those of `docs`
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/reference/completion.h"
#include "cli/reference/man_page.h"
#include "cli/reference/markdown.h"

namespace palmshed::cli {
namespace {

namespace fs = std::filesystem;

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool WriteAll(const fs::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) std::fprintf(stderr, "cannot write %s\n", path.c_str());
  return static_cast<bool>(file);
}

bool WritePages(const fs::path& directory, const std::vector<MarkdownFile>& pages) {
  for (const MarkdownFile& page : pages) {
    if (!WriteAll(directory / page.name, page.text)) return false;
  }
  return true;
}

bool IsPage(const std::vector<MarkdownFile>& pages, const std::string& name) {
  for (const MarkdownFile& page : pages) {
    if (page.name == name) return true;
  }
  return false;
}

bool CheckPages(const fs::path& directory, const std::vector<MarkdownFile>& pages) {
  bool good = true;
  for (const MarkdownFile& page : pages) {
    if (ReadAll(directory / page.name) == page.text) continue;
    std::fprintf(stderr, "%s is not what the program says: run palmshed_reference docs\n",
                 (directory / page.name).c_str());
    good = false;
  }
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(directory, missing)) {
    if (IsPage(pages, entry.path().filename())) continue;
    std::fprintf(stderr, "%s belongs to no command\n", entry.path().c_str());
    good = false;
  }
  return good && !missing;
}

bool WriteInstalled(const fs::path& directory) {
  return WriteAll(directory / "palmshed.1", ManPage()) &&
         WriteAll(directory / "palmshed.bash", BashCompletion()) &&
         WriteAll(directory / "_palmshed", ZshCompletion()) &&
         WriteAll(directory / "palmshed.fish", FishCompletion());
}

bool Perform(std::string_view task, const fs::path& directory) {
  if (task == "check") return CheckPages(directory, MarkdownPages());
  std::error_code failed;
  fs::create_directories(directory, failed);
  if (failed) return false;
  if (task == "install") return WriteInstalled(directory);
  return task == "docs" && WritePages(directory, MarkdownPages());
}

}  // namespace
}  // namespace palmshed::cli

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: palmshed_reference install|docs|check DIRECTORY\n");
    return 2;
  }
  return palmshed::cli::Perform(argv[1], argv[2]) ? 0 : 1;
}
