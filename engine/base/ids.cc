#include "base/ids.h"

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/sys_files.h"

namespace palmshed {

std::string MakeId(std::string_view prefix) {
  // getrandom(2) cannot fail for so few bytes once the pool is up.
  const auto digits = sys::RandomHex(16);
  PALMSHED_CHECK(digits);
  return std::string(prefix) + *digits;
}

}  // namespace palmshed
