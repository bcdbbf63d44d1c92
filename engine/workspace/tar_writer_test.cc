#include "workspace/tar_writer.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "palmshed/error.h"
#include "palmshed/streams.h"
#include "workspace/archive_reader.h"

namespace palmshed::workspace {
namespace {

/// What an archive of one entry says, read again.
std::optional<ArchiveEntry> Again(const TarEntry& entry) {
  MemorySink sink;
  TarWriter writer(sink);
  EXPECT_TRUE(writer.Add(entry));
  if (entry.size < 1000) {
    EXPECT_TRUE(writer.Write(std::vector<std::byte>(entry.size)));
    EXPECT_TRUE(writer.Finish());
    EXPECT_EQ(sink.bytes().size() % 512, 0U);
  } else {
    (void)writer.Finish();  // Only the header is of interest.
  }
  MemorySource source(std::as_bytes(std::span(sink.bytes())));
  auto reader = ArchiveReader::Open(source);
  EXPECT_TRUE(reader);
  auto again = reader->Next();
  EXPECT_TRUE(again) << again.error().message;
  return again ? *again : std::nullopt;
}

TEST(TarWriter, NamesAndTargetsOfAnyLengthAndBytesComeBack) {
  for (const std::size_t length : {1U, 99U, 100U, 101U, 255U, 990U, 4000U}) {
    for (const std::string& letter :
         {std::string("n"), std::string("\xc3\xa9"), std::string("\xff")}) {
      std::string name;
      while (name.size() < length) name += letter;
      const auto link = Again({.name = name, .kind = TarKind::kSymlink, .target = name + "t"});
      ASSERT_TRUE(link);
      EXPECT_EQ(link->name, name) << length;
      EXPECT_EQ(link->target, name + "t") << length;
      EXPECT_EQ(link->kind, EntryKind::kSymlink);
    }
  }
}

TEST(TarWriter, NumbersOfAnySizeComeBack) {
  constexpr std::uint64_t kEightGigabytes = std::uint64_t{8} << 30;
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{511}, kEightGigabytes - 1,
                                   kEightGigabytes, std::uint64_t{1} << 50}) {
    const auto file = Again({.name = "f", .mode = 0640, .size = size});
    ASSERT_TRUE(file);
    EXPECT_EQ(file->size, size);
    EXPECT_EQ(file->mode, 0640U);
  }
  for (const std::time_t time :
       {std::time_t{0}, std::time_t{-1}, std::time_t{1} << 33, std::time_t{1} << 34}) {
    EXPECT_EQ(Again({.name = "f", .modified = time})->modified.tv_sec, time);
  }
}

TEST(TarWriter, ErrorsOfTheSinkComeThrough) {
  class Full final : public ByteSink {
   public:
    Result<void> Write(std::span<const std::byte>) override {
      return std::unexpected(Error{.code = ErrorCode::kOverloaded});
    }
  };
  Full sink;
  TarWriter writer(sink);
  ASSERT_TRUE(writer.Add({.name = "f", .size = 1 << 20}));
  EXPECT_EQ(writer.Write(std::vector<std::byte>(1 << 20)).error().code, ErrorCode::kOverloaded);
}

}  // namespace
}  // namespace palmshed::workspace
