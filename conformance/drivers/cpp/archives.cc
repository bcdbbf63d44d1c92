// The operations that move a whole tree as an archive.
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>
#include <boost/system/error_code.hpp>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "drivers/cpp/base64.h"
#include "drivers/cpp/operations.h"
#include "drivers/cpp/request.h"
#include "palmshed/palmshed.h"

namespace palmshed::conformance {
namespace {

/// What the request does not name stays as the engine has it.
Result<ArchiveLimits> LimitsOf(const Request& request) {
  ArchiveLimits limits;
  const auto entries = request.Count("maxEntries");
  if (!entries) return std::unexpected(entries.error());
  const auto bytes = request.Count("maxBytes");
  if (!bytes) return std::unexpected(bytes.error());
  const auto timeout = request.Number("timeout");
  if (!timeout) return std::unexpected(timeout.error());
  if (*entries) limits.max_entries = **entries;
  if (*bytes) limits.max_bytes = Bytes{**bytes};
  if (*timeout) limits.timeout = Millis(**timeout);
  return limits;
}

/// As text, or as base64 in an object where it is not UTF-8, which the parser finds out.
boost::json::value ToPath(std::string_view path) {
  boost::system::error_code not_utf8;
  boost::json::value text =
      boost::json::parse(boost::json::serialize(boost::json::string(path)), not_utf8);
  return not_utf8 ? boost::json::object{{"base64", ToBase64(path)}} : text;
}

boost::json::object ToDocument(const ArchiveSummary& summary) {
  boost::json::array skipped;
  for (const std::string& path : summary.skipped_paths) skipped.push_back(ToPath(path));
  return {{"entries", summary.entries},
          {"bytes", Count(summary.bytes)},
          {"skipped", summary.skipped},
          {"skippedPaths", std::move(skipped)}};
}

}  // namespace

Result<std::string> Operations::ArchiveUp(const Request& request) {
  const auto place = FindPlace(request);
  if (!place) return std::unexpected(place.error());
  const auto bytes = request.Bytes("bytes");
  if (!bytes) return std::unexpected(bytes.error());
  const auto limits = LimitsOf(request);
  if (!limits) return std::unexpected(limits.error());
  MemorySource source(std::as_bytes(std::span(*bytes)));
  const auto summary = place->sandbox->UploadArchive(place->path, source, *limits);
  if (!summary) return std::unexpected(summary.error());
  return boost::json::serialize(boost::json::object{{"summary", ToDocument(*summary)}});
}

Result<std::string> Operations::ArchiveDown(const Request& request) {
  const auto place = FindPlace(request);
  if (!place) return std::unexpected(place.error());
  const auto limits = LimitsOf(request);
  if (!limits) return std::unexpected(limits.error());
  MemorySink sink;
  const auto summary = place->sandbox->DownloadArchive(place->path, sink, *limits);
  if (!summary) return std::unexpected(summary.error());
  return boost::json::serialize(
      boost::json::object{{"bytes", ToBase64(sink.bytes())}, {"summary", ToDocument(*summary)}});
}

}  // namespace palmshed::conformance
