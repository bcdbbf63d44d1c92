#include "run/ids.h"

#include <sys/random.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace palmshed::run {

std::string MakeId(std::string_view prefix) {
  std::uint64_t random = 0;
  // Up to 256 bytes never come short once the pool is up (getrandom(2)).
  PALMSHED_CHECK(::getrandom(&random, sizeof random, 0) == sizeof random);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string id(prefix);
  for (int i = 0; i < 16; ++i, random >>= 4) id.push_back(kDigits[random & 15]);
  return id;
}

}  // namespace palmshed::run
