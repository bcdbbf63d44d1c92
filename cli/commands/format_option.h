// `--format`, which every verb but `run` has.
#pragma once

#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}

namespace palmshed::cli {

/// Adds `--format text|json`; `format` then holds one of the two.
void AddFormatOption(CLI::App& app, std::string& format);

}  // namespace palmshed::cli
