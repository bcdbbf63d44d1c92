#include "base/build_id.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <ios>
#include <string>

namespace palmshed {
namespace {

std::string Unhex(const std::string& digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

TEST(BuildId, IsThatOfThisProgram) {
  const std::string id = BuildId();
  EXPECT_EQ(id, BuildId());
  EXPECT_GE(id.size(), 16U);
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), id.npos);
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::string start(std::size_t{1} << 16, '\0');  // Its notes come before its code.
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  EXPECT_NE(start.find(Unhex(id)), start.npos);
}

}  // namespace
}  // namespace palmshed
