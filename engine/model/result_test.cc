#include "palmshed/result.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>

#include "model/names.h"
#include "model/print.h"
#include "palmshed/error.h"
#include "palmshed/files.h"
#include "palmshed/json.h"
#include "palmshed/units.h"

namespace palmshed {
namespace {

using namespace std::chrono_literals;

TEST(Captured, TextSaysWhatIsMissing) {
  EXPECT_EQ((Captured{.bytes = "all", .total = 3}).Text(), "all");
  EXPECT_EQ((Captured{.bytes = "tail", .total = 100, .truncated = true}).Text(),
            "[output truncated: showing last 4 of 100 bytes]\ntail");
}

TEST(Captured, TextNeverBeginsInsideACharacter) {  // C025
  EXPECT_EQ((Captured{.bytes = "\x82\xAC!", .total = 9, .truncated = true}).Text(),
            "[output truncated: showing last 1 of 9 bytes]\n!");
  EXPECT_EQ((Captured{.bytes = "\x82\xAC!", .total = 3}).Text(), "\x82\xAC!");
}

TEST(ExecResult, ErrorCodeFollowsFromTheCause) {
  const struct {
    Cause cause;
    std::string_view code;
  } cases[] = {{Cause::kExited, ""},
               {Cause::kSignaled, ""},
               {Cause::kWallTimeout, ""},
               {Cause::kCpuTime, "ERR_CPU_EXCEEDED"},
               {Cause::kMemory, "ERR_OOM_EXCEEDED"},
               {Cause::kDisk, "ERR_DISK_QUOTA_EXCEEDED"},
               {Cause::kPids, ""},
               {Cause::kCancelled, ""},
               {Cause::kStartupFailed, "EXEC_FAILED"},
               {Cause::kBackendLost, "BACKEND_LOST"},
               {Cause::kInternal, "BACKEND_LOST"}};
  for (const auto& [cause, code] : cases) {
    EXPECT_EQ((ExecResult{.termination = {.cause = cause}}).error_code(), code) << ToString(cause);
  }
  EXPECT_EQ(std::size(cases), model::Spellings<Cause>().size());
}

TEST(ResultJson, BytesThatAreNotTextTravelAsBase64) {  // C011
  const auto document = boost::json::parse(
      ToJson(ExecResult{.out = {.bytes = std::string("\xFF\0z", 3), .total = 9, .truncated = true},
                        .err = {.bytes = "h\xC3\xA9", .total = 3}}));
  EXPECT_EQ(document.at("stdoutEncoding"), "base64");
  EXPECT_EQ(document.at("stdout"), "/wB6");
  EXPECT_EQ(document.at("stdoutTotalBytes"), 9);
  EXPECT_EQ(document.at("stderrEncoding"), "utf-8");
  EXPECT_EQ(document.at("stderr"), "h\xC3\xA9");
  EXPECT_EQ(document.at("truncated"), true);
}

TEST(ResultJson, UnknownMeasurementsAreAbsent) {
  const auto document = boost::json::parse(ToJson(ExecResult{})).as_object();
  EXPECT_FALSE(document.contains("cpuTimeMs"));
  EXPECT_FALSE(document.contains("peakMemoryBytes"));
  EXPECT_FALSE(document.contains("error"));
  EXPECT_FALSE(document.at("metadata").as_object().contains("signal"));
  EXPECT_FALSE(document.at("termination").as_object().contains("limit"));
}

TEST(ResultJson, ALimitHitKeepsTheResultAndCarriesTheError) {
  const auto document = boost::json::parse(ToJson(ExecResult{
      .status = Status::kFailed,
      .termination = {.cause = Cause::kMemory, .limit = 100, .observed = 101, .signal = 9},
      .out = {.bytes = "so far", .total = 6}}));
  const auto& error = document.at("error");
  EXPECT_EQ(error.at("code"), "ERR_OOM_EXCEEDED");
  EXPECT_EQ(error.at("resource"), "memory");
  EXPECT_EQ(error.at("limit"), 100);
  EXPECT_EQ(error.at("observed"), 101);
  EXPECT_EQ(error.at("recoverable"), true);
  EXPECT_EQ(document.at("stdout"), "so far");
  EXPECT_EQ(document.at("metadata").at("signal"), 9);
}

TEST(ResultJson, AProgramThatDidNotStartIsExplained) {  // C055
  const auto document = boost::json::parse(ToJson(ExecResult{
      .status = Status::kFailed,
      .termination = {.cause = Cause::kStartupFailed, .stage = "exec", .sys_errno = ENOENT}}));
  const auto& error = document.at("error");
  EXPECT_EQ(error.at("code"), "EXEC_FAILED");
  EXPECT_EQ(error.at("errno"), ENOENT);
  EXPECT_EQ(error.at("message"),
            "The program could not be started: exec: No such file or directory.");
}

TEST(ResultJson, FaultOfTheEngineNamesItsStep) {
  const auto document = boost::json::parse(ToJson(ExecResult{
      .status = Status::kFailed,
      .termination = {.cause = Cause::kInternal, .stage = "write_input", .sys_errno = 12}}));
  EXPECT_EQ(document.at("error").at("code"), "BACKEND_LOST");
  EXPECT_EQ(document.at("error").at("message"),
            "The engine ended the execution: write_input: Cannot allocate memory.");
}

TEST(FilesJson, NamesAreBytes) {
  const auto entry = boost::json::parse(ToJson(DirEntry{
      .name = "\xFF", .stat = {.type = FileType::kSymlink, .size = Bytes{3}, .mode = 0640}}));
  EXPECT_EQ(entry.at("name"), "/w==");
  EXPECT_EQ(entry.at("nameEncoding"), "base64");
  EXPECT_EQ(entry.at("type"), "symlink");
  EXPECT_EQ(entry.at("mode"), 0640);
}

TEST(ErrorJson, TextThatIsNotUtf8IsReplaced) {
  const auto document = boost::json::parse(
      ToJson(Error{.code = ErrorCode::kFsError, .message = "open \xFF: failed", .sys_errno = 2}));
  EXPECT_EQ(document.at("message"), "open \xEF\xBF\xBD: failed");
  EXPECT_EQ(document.at("errno"), 2);
  EXPECT_FALSE(document.as_object().contains("field"));
}

TEST(ErrorJson, AResourceComesWithItsNumbers) {  // C049
  const auto full = boost::json::parse(ToJson(Error{.code = ErrorCode::kDiskQuotaExceeded,
                                                    .message = "It is full.",
                                                    .limit = 100,
                                                    .observed = 101}));
  EXPECT_EQ(full.at("resource"), "disk");
  EXPECT_EQ(full.at("limit"), 100);
  EXPECT_EQ(full.at("observed"), 101);
  EXPECT_EQ(full.at("recoverable"), true);
  const auto other =
      boost::json::parse(ToJson(Error{.code = ErrorCode::kConflict, .message = "no"}));
  EXPECT_FALSE(other.as_object().contains("resource"));
  EXPECT_FALSE(other.as_object().contains("recoverable"));
}

TEST(Iso8601, HasMillisecondsAndZ) {
  const std::chrono::system_clock::time_point epoch;
  EXPECT_EQ(model::Iso8601(epoch), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(model::Iso8601(epoch + 1709210096789ms), "2024-02-29T12:34:56.789Z");
  EXPECT_EQ(model::Iso8601(epoch + 999us), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(model::Iso8601(epoch - 1ms), "1969-12-31T23:59:59.999Z");
}

}  // namespace
}  // namespace palmshed
