#include "workspace/archive_reader.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/result.h"
#include "palmshed/error.h"
#include "palmshed/streams.h"
#include "workspace/archive_error.h"
#include "workspace/ctype_locale.h"
#include "workspace/xz_source.h"

namespace palmshed::workspace {
namespace {

constexpr std::size_t kChunk = 64U << 10;
constexpr std::string_view kNoArchive =
    "is none that can be read: a tar, plain or compressed with gzip, xz or zstd, or a zip";

enum class Container : std::uint8_t { kTar, kGzip, kXz, kZstd, kZip };

constexpr std::size_t kTarBlock = 512;

/// By its checksum: the sum of all bytes, those of the sum itself taken for blanks. Nothing else
/// tells a tar whose first name begins as another container does.
bool IsTarHeader(std::string_view block) {
  constexpr std::size_t kAt = 148;
  constexpr std::size_t kSize = 8;
  if (block.size() < kTarBlock) return false;
  unsigned sum = kSize * ' ';
  for (std::size_t i = 0; i < kTarBlock; ++i) {
    if (i < kAt || i >= kAt + kSize) sum += static_cast<unsigned char>(block[i]);
  }
  std::string_view told = block.substr(kAt, kSize);
  told.remove_prefix(std::min(told.find_first_not_of(' '), told.size()));
  unsigned stated = 0;
  const auto read = std::from_chars(told.data(), told.data() + told.size(), stated, 8);
  return read.ec == std::errc() && stated == sum;
}

Container Recognise(std::string_view begin) {
  if (IsTarHeader(begin)) return Container::kTar;
  if (begin.starts_with("\x1f\x8b")) return Container::kGzip;
  if (begin.starts_with(std::string_view("\xfd"
                                         "7zXZ\0",
                                         6))) {
    return Container::kXz;
  }
  if (begin.starts_with("\x28\xb5\x2f\xfd")) return Container::kZstd;
  if (begin.starts_with("PK\x03\x04") || begin.starts_with("PK\x05\x06")) return Container::kZip;
  return Container::kTar;
}

/// Names in a zip may be marked as UTF-8, and only a locale that has it gives them out; bytes that
/// are in none come through unchanged in "C".
const char* LocaleFor(Container container) {
  return container == Container::kZip ? "C.UTF-8" : "C";
}

/// A source whose first bytes have been looked at.
class PeekedSource final : public ByteSource {
 public:
  explicit PeekedSource(ByteSource& inner) : inner_(inner) {}

  Result<std::string_view> Peek() {
    while (held_ < begin_.size()) {
      PALMSHED_TRY(const std::size_t size, inner_.Read(std::span(begin_).subspan(held_)));
      if (size == 0) break;
      held_ += size;
    }
    return std::string_view(reinterpret_cast<const char*>(begin_.data()), held_);
  }

  Result<std::size_t> Read(std::span<std::byte> into) override {
    if (given_ == held_) return inner_.Read(into);
    const std::size_t size = std::min(into.size(), held_ - given_);
    std::memcpy(into.data(), begin_.data() + given_, size);
    given_ += size;
    return size;
  }
  std::optional<std::uint64_t> size() const override { return inner_.size(); }
  Result<void> SeekTo(std::uint64_t position) override {
    given_ = held_;
    return inner_.SeekTo(position);
  }

 private:
  ByteSource& inner_;
  std::array<std::byte, kTarBlock> begin_{};
  std::size_t held_ = 0;
  std::size_t given_ = 0;
};

std::string Text(const char* text) { return text == nullptr ? std::string() : std::string(text); }

EntryKind KindOf(archive_entry* entry) {
  if (::archive_entry_hardlink(entry) != nullptr) return EntryKind::kHardLink;
  switch (::archive_entry_filetype(entry)) {
    case AE_IFREG:
      return EntryKind::kFile;
    case AE_IFDIR:
      return EntryKind::kDirectory;
    case AE_IFLNK:
      return EntryKind::kSymlink;
    default:  // Of a mode that the archive gives.
      return EntryKind::kOther;
  }
}

ArchiveEntry ToEntry(archive_entry* from) {
  ArchiveEntry entry{.name = Text(::archive_entry_pathname(from)), .kind = KindOf(from)};
  if (entry.kind == EntryKind::kHardLink) entry.target = Text(::archive_entry_hardlink(from));
  if (entry.kind == EntryKind::kSymlink) entry.target = Text(::archive_entry_symlink(from));
  entry.mode = ::archive_entry_perm(from);
  entry.modified = {.tv_sec = ::archive_entry_mtime(from),
                    .tv_nsec = ::archive_entry_mtime_nsec(from)};
  if (::archive_entry_size_is_set(from) != 0 && ::archive_entry_size(from) >= 0) {
    entry.size = static_cast<std::uint64_t>(::archive_entry_size(from));
  }
  entry.has_holes = ::archive_entry_sparse_count(from) > 0;
  return entry;
}

}  // namespace

class ArchiveReader::State {
 public:
  explicit State(ByteSource& source) : peeked_(source) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (archive_ != nullptr) (void)::archive_read_free(archive_);
  }

  Result<void> Open() {
    PALMSHED_TRY(const std::string_view begin, peeked_.Peek());
    const Container container = Recognise(begin);
    zip_ = container == Container::kZip;
    locale_.emplace(LocaleFor(container));
    input_ = &peeked_;
    if (container == Container::kXz) input_ = &xz_.emplace(peeked_);
    buffer_.resize(kChunk);
    const WithLocale ours(locale_->get());
    callers_ = ours.before();
    archive_ = ::archive_read_new();
    if (archive_ == nullptr || !Prepare(container)) return Failed();
    return ::archive_read_open1(archive_) == ARCHIVE_OK ? Result<void>() : Failed();
  }

  Result<std::optional<ArchiveEntry>> Next() {
    const WithLocale ours(locale_->get());
    callers_ = ours.before();
    archive_entry* entry = nullptr;
    const int status = ::archive_read_next_header(archive_, &entry);
    if (status == ARCHIVE_EOF) return std::nullopt;
    // A warning is about names that are no text in any character set: their bytes are there.
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return std::unexpected(Failure());
    ArchiveEntry told = ToEntry(entry);
    PALMSHED_TRY_VOID(CheckMethod(entry, told));
    return told;
  }

  Result<std::optional<Piece>> NextPiece() {
    const WithLocale ours(locale_->get());
    callers_ = ours.before();
    const void* bytes = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    const int status = ::archive_read_data_block(archive_, &bytes, &size, &offset);
    if (status == ARCHIVE_EOF) return std::nullopt;
    if (status != ARCHIVE_OK || offset < 0) return std::unexpected(Failure());
    return Piece{.offset = static_cast<std::uint64_t>(offset),
                 .bytes = {static_cast<const std::byte*>(bytes), size}};
  }

 private:
  bool Prepare(Container container) {
    int status = zip_ ? ::archive_read_support_format_zip(archive_)
                      : ::archive_read_support_format_tar(archive_);
    if (container == Container::kGzip) status |= ::archive_read_support_filter_gzip(archive_);
    if (container == Container::kZstd) status |= ::archive_read_support_filter_zstd(archive_);
    status |= ::archive_read_set_callback_data(archive_, this);
    status |= ::archive_read_set_read_callback(archive_, &State::Read);
    // Of a zip, only its end says which entries are links and what modes they have.
    if (zip_ && input_->size()) {
      status |= ::archive_read_set_seek_callback(archive_, &State::Seek);
    }
    return status == ARCHIVE_OK;
  }

  /// Other methods than these two take hundreds of megabytes if an archive wants it so.
  Result<void> CheckMethod(archive_entry* entry, const ArchiveEntry& told) const {
    if (::archive_entry_is_encrypted(entry) == 1) {
      return std::unexpected(EntryError(told.name, "is encrypted"));
    }
    // Compressed twice: a bomb, or a mistake.
    if (::archive_filter_count(archive_) > 2) return std::unexpected(ArchiveError(kNoArchive));
    if (!zip_ || told.kind != EntryKind::kFile) return {};
    const std::string format = Text(::archive_format_name(archive_));
    if (format.ends_with("(deflation)") || format.ends_with("(uncompressed)")) return {};
    return std::unexpected(EntryError(told.name, "is compressed by another method than deflate"));
  }

  Result<void> Failed() { return std::unexpected(Failure()); }

  Error Failure() {
    if (source_error_) return *std::exchange(source_error_, std::nullopt);
    const char* const why = archive_ == nullptr ? nullptr : ::archive_error_string(archive_);
    const std::string reason = Text(why);
    if (reason.empty() || reason.contains("Unrecognized archive format")) {
      return ArchiveError(kNoArchive);
    }
    return ArchiveError("cannot be read: " + reason);
  }

  // What libarchive calls; the caller's code runs in the caller's own locale.

  static la_ssize_t Read(archive* /*archive*/, void* self, const void** bytes) {
    State& state = *static_cast<State*>(self);
    const WithLocale callers(state.callers_);
    const auto size = state.input_->Read(state.buffer_);
    *bytes = state.buffer_.data();
    return size ? static_cast<la_ssize_t>(*size) : state.Note(size.error());
  }

  static la_int64_t Seek(archive* /*archive*/, void* self, la_int64_t offset, int whence) {
    State& state = *static_cast<State*>(self);
    const WithLocale callers(state.callers_);
    const auto size = static_cast<std::int64_t>(state.input_->size().value_or(0));
    // Never asked from where it is.
    const std::int64_t to = whence == SEEK_END ? size + offset : offset;
    if (whence == SEEK_CUR || to < 0 || to > size) return ARCHIVE_FATAL;
    const auto moved = state.input_->SeekTo(static_cast<std::uint64_t>(to));
    return moved ? to : state.Note(moved.error());
  }

  int Note(const Error& error) {
    source_error_ = error;
    return ARCHIVE_FATAL;
  }

  PeekedSource peeked_;
  std::optional<XzSource> xz_{};
  ByteSource* input_ = nullptr;
  std::optional<CtypeLocale> locale_{};
  locale_t callers_ = nullptr;
  std::vector<std::byte> buffer_{};
  archive* archive_ = nullptr;
  bool zip_ = false;
  std::optional<Error> source_error_{};
};

Result<ArchiveReader> ArchiveReader::Open(ByteSource& source) {
  auto state = std::make_unique<State>(source);
  PALMSHED_TRY_VOID(state->Open());
  return ArchiveReader(std::move(state));
}

ArchiveReader::ArchiveReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
ArchiveReader::ArchiveReader(ArchiveReader&&) noexcept = default;
ArchiveReader::~ArchiveReader() = default;

Result<std::optional<ArchiveEntry>> ArchiveReader::Next() { return state_->Next(); }
Result<std::optional<ArchiveReader::Piece>> ArchiveReader::NextPiece() {
  return state_->NextPiece();
}

}  // namespace palmshed::workspace
