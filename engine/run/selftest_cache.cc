#include "run/selftest_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "backends/backend.h"
#include "base/build_id.h"
#include "base/faults.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "model/capabilities_reader.h"
#include "model/json_reader.h"
#include "model/json_value.h"
#include "palmshed/capabilities.h"
#include "palmshed/json.h"
#include "palmshed/units.h"

namespace palmshed::run {
namespace {

using Clock = SelfTestCache::Clock;

constexpr mode_t kPrivate = 0600;
constexpr mode_t kOthersMayWrite = 0022;
/// Surroundings that come and go (a scope for each login) must not fill the directory.
constexpr std::uint64_t kFiles = 16;
/// Nobody takes that long to write one: its writer was killed.
constexpr std::chrono::minutes kAbandonedAfter{1};

bool IsOursAlone(const struct stat& st) {
  return st.st_uid == ::geteuid() && (st.st_mode & kOthersMayWrite) == 0;
}

std::optional<UniqueFd> OpenDirectory(const std::string& path) {
  auto fd = sys::Open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!fd) return std::nullopt;
  const auto st = sys::Fstat(fd->get());
  if (!st || !S_ISDIR(st->st_mode) || !IsOursAlone(*st)) return std::nullopt;
  return *std::move(fd);
}

bool IsTrusted(const struct stat& st) {
  return S_ISREG(st.st_mode) && IsOursAlone(st) && st.st_nlink == 1 && st.st_size >= 0 &&
         static_cast<std::uint64_t>(st.st_size) <= kMaxTestedBytes;
}

/// To the end, which may have moved since its size was looked at; no further than the limit.
std::optional<std::string> ReadBounded(BorrowedFd fd) {
  std::string content(kMaxTestedBytes + 1, '\0');
  std::size_t size = 0;
  while (size < content.size()) {
    const auto more = sys::Read(fd, std::as_writable_bytes(std::span(content)).subspan(size));
    if (!more) return std::nullopt;
    if (*more == 0) break;
    size += *more;
  }
  if (size > kMaxTestedBytes) return std::nullopt;
  content.resize(size);
  return content;
}

std::optional<std::string> ReadTrusted(const std::string& directory, const std::string& name) {
  const auto parent = OpenDirectory(directory);
  if (!parent) return std::nullopt;
  // O_NONBLOCK: whatever else has that name must not hold us up.
  const auto fd = sys::OpenAt(parent->get(), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!fd) return std::nullopt;
  const auto st = sys::Fstat(fd->get());
  if (!st || !IsTrusted(*st)) return std::nullopt;
  return ReadBounded(fd->get());
}

std::chrono::milliseconds SinceEpoch(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch());
}

bool IsRecent(Millis tested, const Capabilities& capabilities, Clock::time_point now) {
  const bool all = std::ranges::all_of(capabilities.controls, &Control::works);
  const auto age = SinceEpoch(now) - tested;
  return age >= Millis(0) && age < (all ? Millis(kTestedFor) : Millis(kFailedFor));
}

std::string Document(const std::string& key, const Capabilities& capabilities,
                     Clock::time_point now) {
  const boost::json::object head{{"key", key}, {"time", SinceEpoch(now).count()}};
  std::string text = boost::json::serialize(head);
  text.back() = ',';
  return text + "\"capabilities\":" + ToJson(capabilities) + "}";
}

/// A file of that name that is still being written belongs to somebody else, who does the same.
std::optional<UniqueFd> OpenNew(BorrowedFd directory, const std::string& name) {
  auto made = sys::OpenAt(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, kPrivate);
  if (made) return *std::move(made);
  if (made.error().sys_errno != EEXIST) return std::nullopt;
  const auto st = sys::FstatAt(directory, name, AT_SYMLINK_NOFOLLOW);
  if (st && Clock::from_time_t(st->st_mtime) + kAbandonedAfter < Clock::now()) {
    (void)sys::UnlinkAt(directory, name);  // The next one to come can write.
  }
  return std::nullopt;
}

}  // namespace

SelfTestCache::SelfTestCache(std::string directory, std::string key)
    : directory_(std::move(directory)), key_(std::move(key)) {}

std::optional<SelfTestCache> SelfTestCache::For(backends::Backend& backend) {
  if (!Faults().empty()) return std::nullopt;
  const std::string build = BuildId();
  if (build.empty()) return std::nullopt;
  const auto surroundings = backend.Survey();
  if (!surroundings) return std::nullopt;
  std::string key = "backend " + std::string(backend.name()) + "\nbuild " + build + "\n";
  return SelfTestCache(surroundings->place, key + surroundings->facts);
}

std::string SelfTestCache::FileName() const {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : key_) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return "capabilities-" + std::to_string(hash % kFiles) + ".json";
}

std::optional<Capabilities> SelfTestCache::Load(Clock::time_point now) const {
  const auto text = ReadTrusted(directory_, FileName());
  if (!text) return std::nullopt;
  const auto document = model::ParseJson(*text);
  if (!document) return std::nullopt;
  std::string key;
  std::optional<Millis> time;
  model::ObjectReader reader(*document, "");
  reader.Text("key", key);
  reader.Time("time", time);
  const model::JsonValue* const tested = reader.Take("capabilities");
  if (!reader.Finish() || tested == nullptr || !time || key != key_) return std::nullopt;
  auto capabilities = model::ReadCapabilities(*tested, "capabilities");
  if (!capabilities || !IsRecent(*time, *capabilities, now)) return std::nullopt;
  return *std::move(capabilities);
}

void SelfTestCache::Store(const Capabilities& capabilities, Clock::time_point now) const {
  const auto directory = OpenDirectory(directory_);
  const std::string document = Document(key_, capabilities, now);
  if (!directory || document.size() > kMaxTestedBytes) return;
  const std::string name = FileName();
  const std::string unfinished = name + ".new";
  const auto file = OpenNew(directory->get(), unfinished);
  if (!file) return;
  const bool written = sys::WriteAll(file->get(), std::as_bytes(std::span(document))) &&
                       sys::RenameAt(directory->get(), unfinished, directory->get(), name);
  if (!written) (void)sys::UnlinkAt(directory->get(), unfinished);
}

}  // namespace palmshed::run
