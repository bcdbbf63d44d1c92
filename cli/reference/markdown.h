// The pages of docs/cli.
#pragma once

#include <string>
#include <vector>

namespace palmshed::cli {

/// A file of docs/cli.
struct MarkdownFile {
  std::string name{};
  std::string text{};
};

/// An overview, then a page for each verb.
std::vector<MarkdownFile> MarkdownPages();

}  // namespace palmshed::cli
