// `--format`, which every verb but `run` has.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace palmshed::cli {

/// Adds `--format text|json`; `format` then holds one of the two.
void AddFormatOption(CLI::App& app, std::string& format);

}  // namespace palmshed::cli
