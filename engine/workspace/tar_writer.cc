#include "workspace/tar_writer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "palmshed/error.h"
#include "palmshed/streams.h"

namespace palmshed::workspace {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kBuffer = 64U << 10;

/// A field of the header: where it begins, and how long it is.
struct Field {
  std::size_t at;
  std::size_t size;
};
constexpr Field kName{.at = 0, .size = 100};
constexpr Field kMode{.at = 100, .size = 8};
constexpr Field kUid{.at = 108, .size = 8};
constexpr Field kGid{.at = 116, .size = 8};
constexpr Field kSize{.at = 124, .size = 12};
constexpr Field kModified{.at = 136, .size = 12};
constexpr Field kChecksum{.at = 148, .size = 8};
constexpr Field kKind{.at = 156, .size = 1};
constexpr Field kTarget{.at = 157, .size = 100};
constexpr Field kMagic{.at = 257, .size = 8};

constexpr std::uint64_t kLargestNumber = 077777777777;  // What eleven octal digits hold.
constexpr char kPaxKind = 'x';
constexpr char kPaxName[] = "././@PaxHeader";

using Header = std::array<char, kBlock>;

void PutText(Header& header, Field field, std::string_view text) {
  std::copy_n(text.begin(), std::min(text.size(), field.size),
              header.begin() + static_cast<std::ptrdiff_t>(field.at));
}

/// Octal digits up to the last byte, which is NUL.
void PutNumber(Header& header, Field field, std::uint64_t number) {
  for (std::size_t i = field.size - 1; i-- > 0; number >>= 3U) {
    header[field.at + i] = static_cast<char>('0' + (number & 7U));
  }
}

/// The sum of all bytes, those of the sum itself taken for blanks: six digits, NUL, blank.
void PutChecksum(Header& header) {
  PutText(header, kChecksum, "        ");
  std::uint64_t sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  PutNumber(header, {.at = kChecksum.at, .size = kChecksum.size - 1}, sum);
  header[kChecksum.at + kChecksum.size - 2] = '\0';
}

/// `<length> <key>=<value>\n`, where the length counts its own digits too.
void AddRecord(std::string& records, std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) ++length;
  records.append(std::to_string(length)).append(" ").append(key).append("=").append(value) += '\n';
}

bool IsAscii(std::string_view text) {
  return std::ranges::all_of(text,
                             [](char byte) { return static_cast<unsigned char>(byte) < 128; });
}

bool FitsNumber(std::time_t time) {
  return time >= 0 && static_cast<std::uint64_t>(time) <= kLargestNumber;
}

/// What the header alone has no room for; empty: nothing.
std::string ExtendedRecords(const TarEntry& entry) {
  std::string records;
  const bool long_name = entry.name.size() > kName.size;
  const bool long_target = entry.target.size() > kTarget.size;
  // Records are UTF-8 unless this one says that they are bytes.
  if ((long_name && !IsAscii(entry.name)) || (long_target && !IsAscii(entry.target))) {
    AddRecord(records, "hdrcharset", "BINARY");
  }
  if (long_name) AddRecord(records, "path", entry.name);
  if (long_target) AddRecord(records, "linkpath", entry.target);
  if (entry.size > kLargestNumber) AddRecord(records, "size", std::to_string(entry.size));
  if (!FitsNumber(entry.modified)) AddRecord(records, "mtime", std::to_string(entry.modified));
  return records;
}

}  // namespace

Result<void> TarWriter::Add(const TarEntry& entry) {
  const std::string records = ExtendedRecords(entry);
  if (!records.empty()) {
    const TarEntry extension{.name = kPaxName, .mode = 0644};
    PALMSHED_TRY_VOID(AddHeader(extension, kPaxKind, records.size()));
    PALMSHED_TRY_VOID(Put(records));
    PALMSHED_TRY_VOID(PutPadding(records.size()));
  }
  size_ = entry.size;
  left_ = entry.size;
  return AddHeader(entry, static_cast<char>(entry.kind), entry.size);
}

Result<void> TarWriter::AddHeader(const TarEntry& entry, char kind, std::uint64_t size) {
  Header header{};
  PutText(header, kName, entry.name);
  PutNumber(header, kMode, entry.mode);
  PutNumber(header, kUid, 0);
  PutNumber(header, kGid, 0);
  PutNumber(header, kSize, std::min(size, kLargestNumber));
  PutNumber(header, kModified,
            FitsNumber(entry.modified) ? static_cast<std::uint64_t>(entry.modified) : 0);
  PutText(header, kKind, {&kind, 1});
  PutText(header, kTarget, entry.target);
  PutText(header, kMagic, std::string_view("ustar\00000", kMagic.size));
  PutChecksum(header);
  return Put({header.data(), header.size()});
}

Result<void> TarWriter::Write(std::span<const std::byte> bytes) {
  PALMSHED_CHECK(bytes.size() <= left_);
  left_ -= bytes.size();
  PALMSHED_TRY_VOID(Put({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  return left_ == 0 ? PutPadding(size_) : Result<void>();
}

Result<void> TarWriter::Finish() {
  PALMSHED_TRY_VOID(Put(std::string(2 * kBlock, '\0')));
  return sink_.Write(buffer_);
}

Result<void> TarWriter::Put(std::string_view bytes) {
  const auto raw = std::as_bytes(std::span(bytes));
  buffer_.insert(buffer_.end(), raw.begin(), raw.end());
  if (buffer_.size() < kBuffer) return {};
  PALMSHED_TRY_VOID(sink_.Write(buffer_));
  buffer_.clear();
  return {};
}

Result<void> TarWriter::PutPadding(std::uint64_t size) {
  return Put(std::string((kBlock - size % kBlock) % kBlock, '\0'));
}

}  // namespace palmshed::workspace
