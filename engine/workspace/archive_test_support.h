// Archives for tests, made by libarchive's own writer: none of what is under test.
#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "palmshed/streams.h"

namespace palmshed::workspace {

/// An archive in memory, entry by entry. Names are taken as they are, however hostile.
class TestArchive {
 public:
  enum class Format { kTar, kZip };
  enum class Filter { kNone, kGzip, kXz, kZstd };

  explicit TestArchive(Format format = Format::kTar, Filter filter = Filter::kNone)
      : archive_(::archive_write_new()) {
    if (format == Format::kTar) (void)::archive_write_set_format_pax_restricted(archive_);
    if (format == Format::kZip) (void)::archive_write_set_format_zip(archive_);
    if (filter == Filter::kGzip) (void)::archive_write_add_filter_gzip(archive_);
    if (filter == Filter::kXz) (void)::archive_write_add_filter_xz(archive_);
    if (filter == Filter::kZstd) (void)::archive_write_add_filter_zstd(archive_);
    (void)::archive_write_set_bytes_in_last_block(archive_,
                                                  1);  // No NULs behind what is compressed.
    EXPECT_EQ(::archive_write_open(archive_, &bytes_, nullptr, &TestArchive::Take, nullptr), 0);
  }
  TestArchive(const TestArchive&) = delete;
  TestArchive& operator=(const TestArchive&) = delete;
  ~TestArchive() { (void)::archive_write_free(archive_); }

  TestArchive& File(const std::string& name, std::string_view content, mode_t mode = 0644) {
    archive_entry* const entry = Begin(name, AE_IFREG, mode);
    ::archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
    ::archive_entry_set_mtime(entry, 1'000'000'000, 0);
    End(entry);
    EXPECT_EQ(::archive_write_data(archive_, content.data(), content.size()),
              static_cast<la_ssize_t>(content.size()));
    return *this;
  }
  /// `size` bytes, of which only the last few are no hole.
  TestArchive& Sparse(const std::string& name, la_int64_t size) {
    constexpr la_int64_t kTail = 512;
    archive_entry* const entry = Begin(name, AE_IFREG, 0644);
    ::archive_entry_set_size(entry, size);
    ::archive_entry_sparse_add_entry(entry, size - kTail, kTail);
    End(entry);
    const std::string chunk(1 << 20, 'x');
    for (la_int64_t left = size; left > 0;) {
      const auto n = static_cast<std::size_t>(left < 1 << 20 ? left : 1 << 20);
      EXPECT_GE(::archive_write_data(archive_, chunk.data(), n), 0);
      left -= static_cast<la_int64_t>(n);
    }
    return *this;
  }
  TestArchive& Directory(const std::string& name, mode_t mode = 0755) {
    End(Begin(name, AE_IFDIR, mode));
    return *this;
  }
  TestArchive& Symlink(const std::string& name, const std::string& target) {
    archive_entry* const entry = Begin(name, AE_IFLNK, 0777);
    ::archive_entry_set_symlink(entry, target.c_str());
    End(entry);
    return *this;
  }
  TestArchive& HardLink(const std::string& name, const std::string& target) {
    archive_entry* const entry = Begin(name, AE_IFREG, 0644);
    ::archive_entry_set_hardlink(entry, target.c_str());
    End(entry);
    return *this;
  }
  /// AE_IFCHR, AE_IFIFO, ...
  TestArchive& Special(const std::string& name, unsigned int type) {
    archive_entry* const entry = Begin(name, type, 0666);
    ::archive_entry_set_rdev(entry, 0x103);  // /dev/null
    End(entry);
    return *this;
  }

  /// The whole archive. Once, after the last entry.
  const std::string& Bytes() {
    EXPECT_EQ(::archive_write_close(archive_), ARCHIVE_OK);
    return bytes_;
  }

 private:
  static la_ssize_t Take(archive* /*archive*/, void* to, const void* bytes, std::size_t size) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), size);
    return static_cast<la_ssize_t>(size);
  }
  static archive_entry* Begin(const std::string& name, unsigned int type, mode_t mode) {
    archive_entry* const entry = ::archive_entry_new();
    ::archive_entry_set_pathname(entry, name.c_str());
    ::archive_entry_set_filetype(entry, type);
    ::archive_entry_set_perm(entry, mode);
    return entry;
  }
  void End(archive_entry* entry) {
    EXPECT_GE(::archive_write_header(archive_, entry), ARCHIVE_WARN)
        << ::archive_error_string(archive_);
    ::archive_entry_free(entry);
  }

  archive* archive_;
  std::string bytes_{};
};

/// A source that cannot go back, in pieces of an awkward size.
class TrickleSource final : public ByteSource {
 public:
  explicit TrickleSource(std::string_view bytes) : bytes_(bytes) {}
  Result<std::size_t> Read(std::span<std::byte> into) override {
    constexpr std::size_t kMost = 1001;
    const std::size_t size = std::min({into.size(), bytes_.size(), kMost});
    bytes_.copy(reinterpret_cast<char*>(into.data()), size);
    bytes_.remove_prefix(size);
    return size;
  }

 private:
  std::string_view bytes_;
};

}  // namespace palmshed::workspace
