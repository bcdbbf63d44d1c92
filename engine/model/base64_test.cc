#include "model/base64.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

namespace palmshed::model {
namespace {

TEST(Base64, KnowsTheVectorsOfRfc4648) {
  const struct {
    std::string_view bytes;
    std::string_view text;
  } cases[] = {{"", ""},
               {"f", "Zg=="},
               {"fo", "Zm8="},
               {"foo", "Zm9v"},
               {"foob", "Zm9vYg=="},
               {"fooba", "Zm9vYmE="},
               {"foobar", "Zm9vYmFy"},
               {"\xFB\xFF\xBF", "+/+/"}};
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(EncodeBase64(bytes), text);
    EXPECT_EQ(DecodeBase64(text), bytes);
  }
}

TEST(Base64, CarriesEveryByte) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  EXPECT_EQ(DecodeBase64(EncodeBase64(bytes)), bytes);
}

TEST(Base64, RefusesWhatItWouldNotWrite) {
  for (const std::string_view text : {"Zg", "Zg=", "Zg===", "Z===", "====", "=", "Zh==", "Zm9=",
                                      "Zm9v\n", "Zm 9", "Z-_v", "Zg==Zg==", "Zm9vZ"}) {
    EXPECT_EQ(DecodeBase64(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace palmshed::model
