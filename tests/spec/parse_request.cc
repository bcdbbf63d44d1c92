// Reads lines of the form `<schema> <document on one line>` and answers each with "ok" or with the
// error's document. check_engine.py compares the verdicts with those of spec/schemas.
#include <cstddef>
#include <iostream>
#include <string>
#include <string_view>

#include "palmshed/palmshed.h"

namespace {

template <class T>
std::string Verdict(const palmshed::Result<T>& parsed) {
  return parsed ? "ok" : palmshed::ToJson(parsed.error());
}

std::string Parse(std::string_view schema, std::string_view document) {
  if (schema == "sandbox-options") return Verdict(palmshed::ParseSandboxOptions(document));
  if (schema == "exec-options") return Verdict(palmshed::ParseExecRequest(document));
  return "no such request";
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const std::string_view text(line);
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos) return 1;
    std::cout << Parse(text.substr(0, space), text.substr(space + 1)) << '\n';
  }
  return 0;
}
