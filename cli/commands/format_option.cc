#include "cli/commands/format_option.h"

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <string>
#include <vector>

namespace palmshed::cli {

void AddFormatOption(CLI::App& app, std::string& format) {
  format = "text";
  app.add_option("--format", format, "Print for people (text, the default) or programs (json).")
      ->check(CLI::IsMember(std::vector<std::string>{"text", "json"}).description(""))
      ->type_name("text|json")
      ->group("Output")
      ->take_last();
}

}  // namespace palmshed::cli
