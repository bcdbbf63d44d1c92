#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "palmshed/error.h"
#include "palmshed/json.h"
#include "palmshed/options.h"
#include "palmshed/units.h"

namespace palmshed {
namespace {

using namespace std::chrono_literals;
using namespace palmshed::literals;
using std::string_literals::operator""s;

TEST(ParseExecRequest, ReadsEveryField) {
  const Result<ExecRequest> request = ParseExecRequest(R"({
    "args": ["python3", "-c", ""], "timeout": 1, "cpuTimeLimit": 2, "cpuQuota": 1.5,
    "memory": "64m", "pids": 8, "maxOutputBytes": 1024, "workDir": "a/b", "env": {"A": "b"},
    "stdin": {"text": "in"}, "tty": {"rows": 50}, "descendants": "wait", "timings": true})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->args, (std::vector<std::string>{"python3", "-c", ""}));
  EXPECT_TRUE(request->command.empty());
  const ExecOptions& options = request->options;
  EXPECT_EQ(options.timeout, 1ms);
  EXPECT_EQ(options.cpu_time_limit, 2ms);
  EXPECT_EQ(options.cpu_quota, 1.5);
  EXPECT_EQ(options.memory, 64_MiB);
  EXPECT_EQ(options.pids, 8U);
  EXPECT_EQ(options.max_output, 1_KiB);
  EXPECT_EQ(options.work_dir, "a/b");
  EXPECT_EQ(options.env, (Env{{"A", "b"}}));
  EXPECT_EQ(options.stdin_bytes, "in");
  EXPECT_FALSE(options.stdin_pipe);
  ASSERT_TRUE(options.tty);
  EXPECT_EQ(options.tty->rows, 50);
  EXPECT_EQ(options.tty->columns, 80);
  EXPECT_EQ(options.descendants, Descendants::kWait);
  EXPECT_TRUE(options.timings);
}

TEST(ParseExecRequest, TheShellFormIsUnchanged) {
  const Result<ExecRequest> request = ParseExecRequest(R"({"command": " echo \"$HOME\" | cat "})");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->command, " echo \"$HOME\" | cat ");
  EXPECT_TRUE(request->args.empty());
}

TEST(ParseExecRequest, StdinHasFourForms) {
  EXPECT_FALSE(ParseExecRequest(R"({"args":["a"],"stdin":"null"})")->options.stdin_pipe);
  EXPECT_TRUE(ParseExecRequest(R"({"args":["a"],"stdin":"pipe"})")->options.stdin_pipe);
  EXPECT_EQ(ParseExecRequest(R"({"args":["a"],"stdin":{"text":"a\u0000b"}})")->options.stdin_bytes,
            "a\0b"s);
  EXPECT_EQ(ParseExecRequest(R"({"args":["a"],"stdin":{"base64":"/wA="}})")->options.stdin_bytes,
            "\xFF\0"s);
}

TEST(ParseExecRequest, ErrorsNameTheField) {
  const struct {
    std::string_view json;
    std::string_view field;
  } cases[] = {
      {"{}", "args"},                    // C055
      {R"({"args": []})", "args"},       // C055
      {R"({"args": [""]})", "args[0]"},  // C055
      {R"({"command": ""})", "args"},
      {R"({"command": "a", "args": ["a"]})", "command"},
      {R"({"command": "", "args": ["a"]})", "command"},
      {R"({"command": "a\u0000b"})", "command"},
      {R"({"args": ["a", "b\u0000"]})", "args[1]"},
      {R"({"args": ["a", 1]})", "args[1]"},
      {R"({"args": "a"})", "args"},
      {R"({"command": ["a"]})", "command"},
      {R"({"args": ["a"], "network": "allow"})", "network"},  // C091
      {R"({"args": ["a"], "stdin": "hello"})", "stdin"},
      {R"({"args": ["a"], "stdin": 1})", "stdin"},
      {R"({"args": ["a"], "stdin": {}})", "stdin"},
      {R"({"args": ["a"], "stdin": {"text": "", "base64": ""}})", "stdin"},
      {R"({"args": ["a"], "stdin": {"base64": "?"}})", "stdin.base64"},
      {R"({"args": ["a"], "stdin": {"file": "/etc/passwd"}})", "stdin.file"},
      {R"({"args": ["a"], "tty": true})", "tty"},
      {R"({"args": ["a"], "tty": {"rows": 0}})", "tty.rows"},
      {R"({"args": ["a"], "tty": {"cols": 65536}})", "tty.cols"},
      {R"({"args": ["a"], "tty": {"columns": 80}})", "tty.columns"},
      {R"({"args": ["a"], "descendants": "keep"})", "descendants"},
      {R"({"args": ["a"], "timings": 1})", "timings"},
      {R"({"args": ["a"], "env": {"": "x"}})", "env"},
      {R"({"args": ["a"], "env": {"A=B": "x"}})", "env.A=B"},
      {R"({"args": ["a"], "env": {"A": "\u0000"}})", "env.A"},
      {R"({"args": ["a"], "workDir": "/tmp"})", "workDir"},
      {R"({"args": ["a"], "timeout": -1})", "timeout"},
  };
  for (const auto& [json, field] : cases) {
    const Result<ExecRequest> request = ParseExecRequest(json);
    ASSERT_FALSE(request) << json;
    EXPECT_EQ(request.error().code, ErrorCode::kInvalidOptions) << json;
    EXPECT_EQ(request.error().field, field) << json << ": " << request.error().message;
  }
}

}  // namespace
}  // namespace palmshed
