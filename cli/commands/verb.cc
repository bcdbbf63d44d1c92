#include "cli/commands/verb.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "cli/commands/completion.h"
#include "cli/commands/doctor.h"
#include "cli/commands/help.h"
#include "cli/commands/run.h"
#include "cli/commands/version.h"

namespace palmshed::cli {

std::span<const Verb> Verbs() {
  static constexpr std::array kVerbs{kRunVerb, kDoctorVerb, kVersionVerb, kHelpVerb,
                                     kCompletionVerb};
  return kVerbs;
}

const Verb* FindVerb(std::string_view name) {
  const auto verbs = Verbs();
  const auto found = std::ranges::find(verbs, name, &Verb::name);
  return found == verbs.end() ? nullptr : &*found;
}

}  // namespace palmshed::cli
