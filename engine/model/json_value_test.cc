#include "model/json_value.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <string>
#include <string_view>

#include "palmshed/error.h"
#include "palmshed/json.h"
#include "palmshed/options.h"

namespace palmshed::model {
namespace {

using Kind = JsonValue::Kind;

std::string Nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(ParseJson, KeepsOrderDuplicatesAndNumbersAsWritten) {
  const Result<JsonValue> root = ParseJson(R"( {"b": 1.50e2, "a": [true, null], "b": "\u00e9"} )");
  ASSERT_TRUE(root) << root.error().message;
  ASSERT_EQ(root->kind, Kind::kObject);
  ASSERT_EQ(root->items.size(), 3U);
  EXPECT_EQ(root->items[0].name, "b");
  EXPECT_EQ(root->items[0].text, "1.50e2");
  ASSERT_EQ(root->items[1].items.size(), 2U);
  EXPECT_TRUE(root->items[1].items[0].flag);
  EXPECT_EQ(root->items[1].items[1].kind, Kind::kNull);
  EXPECT_EQ(root->items[2].name, "b");
  EXPECT_EQ(root->items[2].text, "\xC3\xA9");
}

TEST(ParseJson, KeepsDigitsThatNoDoubleHolds) {
  for (const std::string_view text :
       {"9007199254740993", "-9223372036854775809", "18446744073709551616", "1e308", "0.1"}) {
    const Result<JsonValue> root = ParseJson(text);
    ASSERT_TRUE(root) << text;
    EXPECT_EQ(root->kind, Kind::kNumber);
    EXPECT_EQ(root->text, text);
  }
}

TEST(ParseJson, RefusesEverythingThatIsNotStrictJson) {
  for (const std::string_view text : {"",
                                      " ",
                                      "{",
                                      "}",
                                      "[1,]",
                                      R"({"a":1,})",
                                      "{a:1}",
                                      "'a'",
                                      "NaN",
                                      "Infinity",
                                      "-",
                                      "01",
                                      "1.",
                                      ".5",
                                      "+1",
                                      "0x1",
                                      "// c\n1",
                                      "1 2",
                                      "{} {}",
                                      "\"\xFF\"",
                                      "\"\xED\xA0\x80\"",
                                      R"("\ud800")",
                                      R"("\x")",
                                      "\"a\nb\"",
                                      "nul",
                                      "tru",
                                      "\xEF\xBB\xBF{}"}) {
    const Result<JsonValue> root = ParseJson(text);
    ASSERT_FALSE(root) << text;
    EXPECT_EQ(root.error().code, ErrorCode::kInvalidOptions);
  }
}

TEST(ParseJson, BoundsDepth) {
  EXPECT_TRUE(ParseJson(Nested(kMaxDocumentDepth)));
  EXPECT_FALSE(ParseJson(Nested(kMaxDocumentDepth + 1)));
  EXPECT_FALSE(ParseJson(std::string(1 << 20, '[')));
  EXPECT_FALSE(ParseJson(std::string(1 << 20, '{')));
}

TEST(ParseJson, BoundsTheNumberOfValues) {
  std::string list = "[0";
  for (std::size_t i = 2; i < kMaxDocumentValues; ++i) list += ",0";
  EXPECT_TRUE(ParseJson(list + "]"));
  const Result<JsonValue> root = ParseJson(list + ",0]");
  ASSERT_FALSE(root);
  EXPECT_EQ(root.error().message, "the document has more than 262144 values");
}

TEST(ParseJson, BoundsTheSize) {
  const std::string largest = "\"" + std::string(kMaxDocumentBytes - 2, 'a') + "\"";
  EXPECT_TRUE(ParseJson(largest));
  EXPECT_FALSE(ParseJson(largest + " "));
}

// Whatever arrives is answered: with a value or an error, never by crashing. The seed is fixed, so
// that a failure comes back.
TEST(ParseJson, AnswersEveryMutationOfARequest) {
  const std::string_view request =
      R"({"args":["a","\u00e9\ud83d\ude00"],"timeout":-1.5e+30,"env":{"A":"b"},"tty":{"rows":1},)"
      R"("stdin":{"base64":"AA=="},"memory":"1.5GB","pids":null,"descendants":true})";
  std::mt19937 random(20240601);
  for (int round = 0; round < 20000; ++round) {
    std::string mutated(request);
    for (int edit = 0; edit < 3; ++edit) {
      const std::size_t at = random() % mutated.size();
      if (random() % 2 == 0) mutated[at] = static_cast<char>(random() % 256);
      if (random() % 4 == 0) mutated.insert(at, mutated, random() % mutated.size(), 5);
    }
    const Result<ExecRequest> exec = ParseExecRequest(mutated);
    const Result<SandboxOptions> sandbox = ParseSandboxOptions(mutated);
    if (!exec) {
      EXPECT_EQ(exec.error().code, ErrorCode::kInvalidOptions);
    }
    if (!sandbox) {
      EXPECT_EQ(sandbox.error().code, ErrorCode::kInvalidOptions);
    }
  }
}

}  // namespace
}  // namespace palmshed::model
