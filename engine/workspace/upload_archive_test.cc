#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <expected>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/sys.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/files.h"
#include "palmshed/streams.h"
#include "palmshed/units.h"
#include "workspace/archive_test_support.h"
#include "workspace/disk_account.h"
#include "workspace/test_tree.h"
#include "workspace/workspace.h"

namespace palmshed::workspace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Format = TestArchive::Format;
using Filter = TestArchive::Filter;

class UploadArchiveTest : public ::testing::Test {
 protected:
  Result<ArchiveSummary> Upload(std::string_view path, TestArchive& archive,
                                const ArchiveLimits& limits = {}) const {
    return UploadBytes(path, archive.Bytes(), limits);
  }
  Result<ArchiveSummary> UploadBytes(std::string_view path, std::string_view bytes,
                                     const ArchiveLimits& limits = {}) const {
    MemorySource source(AsBytes(bytes));
    return workspace_.UploadArchive(path, source, limits);
  }
  /// Refused, naming the entry and what is wrong, and nothing but what was there is left.
  void ExpectRefused(TestArchive& archive, std::string_view entry, std::string_view problem) const {
    const auto before = tree_.Names();
    const auto uploaded = Upload("fresh", archive);
    ASSERT_FALSE(uploaded.has_value()) << entry;
    EXPECT_EQ(uploaded.error().code, ErrorCode::kFsError);
    EXPECT_EQ(uploaded.error().field, "archive");
    EXPECT_THAT(uploaded.error().message, AllOf(HasSubstr(entry), HasSubstr(problem)));
    EXPECT_EQ(tree_.Names(), before);
  }

  TestTree outer_;
  TestTree tree_;
  Workspace workspace_{tree_.Open()};
};

TEST_F(UploadArchiveTest, EveryContainerIsRecognised) {
  const std::string content(300'000, 'c');
  for (const Format format : {Format::kTar, Format::kZip}) {
    for (const Filter filter : {Filter::kNone, Filter::kGzip, Filter::kXz, Filter::kZstd}) {
      if (format == Format::kZip && filter != Filter::kNone) continue;
      const std::string name =
          std::to_string(static_cast<int>(format)) + "-" + std::to_string(static_cast<int>(filter));
      TestArchive archive(format, filter);
      archive.Directory("d", 0750).File("d/f", content, 04755).File("e", "").Symlink("d/l", "../e");
      const auto uploaded = Upload(name, archive);
      ASSERT_TRUE(uploaded) << name << uploaded.error().message;
      EXPECT_EQ(uploaded->entries, 4U);
      EXPECT_EQ(uploaded->bytes, Bytes{300'000});
      EXPECT_EQ(tree_.Read(name + "/d/f"), content);
      EXPECT_EQ(tree_.Mode(name + "/d/f"), 0755U);
      EXPECT_EQ(tree_.Mode(name + "/d"), 0750U);
      EXPECT_EQ(tree_.Target(name + "/d/l"), "../e");
      EXPECT_EQ(tree_.Lstat(name + "/d/f").st_mtime, 1'000'000'000);
      EXPECT_EQ(tree_.Mode(name), 0755U);
    }
  }
}

TEST_F(UploadArchiveTest, SourceNeedNotGoBack) {
  for (const Format format : {Format::kTar, Format::kZip}) {
    TestArchive archive(format);
    archive.File("f", std::string(20'000, 'x'));
    TrickleSource source(archive.Bytes());
    const auto uploaded = workspace_.UploadArchive("", source);
    ASSERT_TRUE(uploaded) << uploaded.error().message;
    EXPECT_EQ(tree_.Read("f"), std::string(20'000, 'x'));
    ASSERT_TRUE(workspace_.Remove("f", false));
  }
}

TEST_F(UploadArchiveTest, DescriptorIsReadFromWhereItStands) {
  for (const Format format : {Format::kTar, Format::kZip}) {
    TestArchive archive(format);
    archive.File("f", "content");
    outer_.Write("a", "before" + archive.Bytes());
    const UniqueFd fd(::open(outer_.At("a").c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(::lseek(fd.get(), 6, SEEK_SET), 6);
    DescriptorSource source(fd.get());
    const auto uploaded = workspace_.UploadArchive("d", source);
    ASSERT_TRUE(uploaded) << uploaded.error().message;
    EXPECT_EQ(tree_.Read("d/f"), "content");
    ASSERT_TRUE(workspace_.Remove("d", true));
  }
}

TEST_F(UploadArchiveTest, PipeIsReadToItsEnd) {
  TestArchive archive;
  archive.File("f", std::string(1 << 20, 'x'));
  const std::string bytes = archive.Bytes();
  auto pipe = sys::Pipe();
  ASSERT_TRUE(pipe);
  std::thread writer(
      [&, to = std::move(pipe->second)] { EXPECT_TRUE(sys::WriteAll(to.get(), AsBytes(bytes))); });
  DescriptorSource source(pipe->first.get());
  EXPECT_TRUE(workspace_.UploadArchive("", source));
  writer.join();
  EXPECT_EQ(tree_.Lstat("f").st_size, 1 << 20);
}

TEST_F(UploadArchiveTest, NamesAreBytes) {
  TestArchive tar;
  tar.File("caf\xc3\xa9", "a").File("\xff\xfe", "b").File(std::string(250, 'n'), "c");
  ASSERT_TRUE(Upload("tar", tar));
  EXPECT_THAT(tree_.Names("tar"), ElementsAre("caf\xc3\xa9", std::string(250, 'n'), "\xff\xfe"));
}

TEST_F(UploadArchiveTest, HostilePathsAreRefused) {
  for (const std::string& name :
       std::vector<std::string>{"../out", "a/../../out", "a/..", "..", "a/../b"}) {
    TestArchive archive;
    archive.File("before", "x").File(name, "x");
    ExpectRefused(archive, name, "\"..\"");
  }
  TestArchive absolute;
  absolute.File("/etc/x", "x");
  ExpectRefused(absolute, "/etc/x", "absolute");
  TestArchive deep;
  std::string path;
  for (int i = 0; i < 300; ++i) path += "d/";
  deep.File(path + "f", "x");
  ExpectRefused(deep, "d/d/d", "256 components");
  TestArchive itself;
  itself.File("./.", "x");
  ExpectRefused(itself, "", "names no file");
}

TEST_F(UploadArchiveTest, SpecialFilesAreRefused) {
  for (const unsigned int type : {AE_IFCHR, AE_IFBLK, AE_IFIFO}) {
    TestArchive archive;
    archive.Special("dev", type);
    ExpectRefused(archive, "dev", "neither a file");
  }
}

TEST_F(UploadArchiveTest, LinksThatLeaveAreRefused) {
  for (const std::string& target :
       std::vector<std::string>{"/etc/passwd", "../../x", "d/../../../x", "/"}) {
    TestArchive archive;
    archive.Symlink("l", target);
    ExpectRefused(archive, "l", "leaves the workspace");
  }
  // The control: up to the workspace itself, which is one above the directory, it may lead.
  TestArchive archive;
  archive.Symlink("l", "../x");
  EXPECT_TRUE(Upload("fresh", archive));
}

TEST_F(UploadArchiveTest, NothingIsWrittenThroughALinkOfTheArchive) {
  tree_.Mkdir("in");
  TestArchive archive;
  archive.Symlink("l", "../in").File("l/f", "x");
  ExpectRefused(archive, "l/f", "leads through a link");
  EXPECT_THAT(tree_.Names("in"), IsEmpty());
  TestArchive directory;
  directory.Symlink("l", "../in").Directory("l");
  ExpectRefused(directory, "l", "leads through a link");
  // The control: a link in the last place is replaced, not followed.
  tree_.Write("in/kept", "kept");
  TestArchive last;
  last.Symlink("l", "../in/kept").File("l", "new");
  ASSERT_TRUE(Upload("fresh", last));
  EXPECT_EQ(tree_.Read("fresh/l"), "new");
  EXPECT_EQ(tree_.Read("in/kept"), "kept");
}

TEST_F(UploadArchiveTest, NothingIsWrittenThroughALinkThatIsThere) {
  tree_.Mkdir("d");
  tree_.Link(outer_.path(), "d/out");
  tree_.Link("..", "d/up");
  for (const char* name : {"d/out/f", "d/up/f", "d/up/d/f"}) {
    TestArchive archive;
    archive.File(name, "x");
    const auto uploaded = Upload("", archive);
    ASSERT_FALSE(uploaded.has_value()) << name;
    EXPECT_THAT(uploaded.error().message, HasSubstr("leads through a link"));
  }
  EXPECT_THAT(outer_.Names(), IsEmpty());
  EXPECT_THAT(tree_.Names(), ElementsAre("d"));
}

TEST_F(UploadArchiveTest, HardLinksStayAmongWhatWasExtracted) {
  outer_.Write("victim", "v");
  tree_.Write("beside", "b");
  for (const std::string& target : {outer_.At("victim"), std::string("../beside"),
                                    std::string("missing"), std::string("l"), std::string("d")}) {
    TestArchive archive;
    archive.Directory("d").Symlink("l", "d").HardLink("h", target);
    ExpectRefused(archive, "\"h\"", "");
  }
  TestArchive through;
  through.Symlink("l", "..").HardLink("h", "l/beside");
  ExpectRefused(through, "\"h\"", "hard link to no file");
  TestArchive good;
  good.File("d/f", "x").HardLink("h", "d/f").HardLink("h", "d/f");
  ASSERT_TRUE(Upload("fresh", good));
  EXPECT_EQ(tree_.Lstat("fresh/h").st_ino, tree_.Lstat("fresh/d/f").st_ino);
  EXPECT_THAT(tree_.Names("fresh"), ElementsAre("d", "h"));
}

TEST_F(UploadArchiveTest, FilesReplaceFilesAndNothingElse) {
  tree_.Mkdir("t");
  tree_.Mkdir("t/d", 0700);
  tree_.Write("t/f", "old");
  tree_.Write("t/kept", "kept");
  tree_.Fifo("t/fifo");
  tree_.HardLink("t/f", "t/other");
  TestArchive good;
  good.File("f", "new").Directory("d", 0755).File("d/x", "x").Directory(".");
  ASSERT_TRUE(Upload("t", good));
  EXPECT_EQ(tree_.Read("t/f"), "new");
  EXPECT_EQ(tree_.Read("t/other"), "old");
  EXPECT_EQ(tree_.Mode("t/d"), 0700U);
  EXPECT_EQ(tree_.Read("t/kept"), "kept");
  const auto refuse = [&](TestArchive& archive, std::string_view problem) {
    const auto uploaded = Upload("t", archive);
    ASSERT_FALSE(uploaded.has_value()) << problem;
    EXPECT_THAT(uploaded.error().message, HasSubstr(problem));
  };
  TestArchive over_directory;
  over_directory.File("d", "x");
  refuse(over_directory, "is a file where there is a directory");
  TestArchive over_file;
  over_file.Directory("f");
  refuse(over_file, "needs a directory");
  TestArchive below_file;
  below_file.File("f/x", "x");
  refuse(below_file, "needs a directory");
  TestArchive over_fifo;
  over_fifo.File("fifo", "x");
  refuse(over_fifo, "no file");
  EXPECT_EQ(tree_.Read("t/f"), "new");
}

TEST_F(UploadArchiveTest, DirectoryThatExistsKeepsWhatCameBeforeTheError) {
  tree_.Mkdir("t");
  TestArchive archive;
  archive.File("first", "1").File("../second", "2").File("third", "3");
  EXPECT_FALSE(Upload("t", archive).has_value());
  EXPECT_THAT(tree_.Names("t"), ElementsAre("first"));
}

TEST_F(UploadArchiveTest, ReadOnlyDirectoriesCanBeFilled) {
  const AsOrdinaryUser user(tree_);
  TestArchive archive;
  archive.Directory("d", 0555).File("d/f", "x", 0444);
  const auto uploaded = Upload("t", archive);
  ASSERT_TRUE(uploaded) << uploaded.error().message;
  EXPECT_EQ(tree_.Mode("t/d"), 0755U);
  EXPECT_EQ(tree_.Mode("t/d/f"), 0444U);
}

TEST_F(UploadArchiveTest, WhatIsNoArchiveIsRefused) {
  std::string truncated = TestArchive().File("f", std::string(100'000, 'x')).Bytes();
  truncated.resize(50'000);
  for (const std::string& bytes :
       {std::string(), std::string("x"), std::string(100'000, 'j'), truncated,
        std::string("\x1f\x8b garbage"), std::string("PK\x03\x04 garbage"),
        std::string("\xfd"
                    "7zXZ\0 garbage",
                    14)}) {
    const auto uploaded = UploadBytes("t", bytes);
    ASSERT_FALSE(uploaded.has_value()) << bytes.substr(0, 10);
    EXPECT_EQ(uploaded.error().code, ErrorCode::kFsError);
    EXPECT_EQ(uploaded.error().field, "archive");
    EXPECT_THAT(tree_.Names(), IsEmpty());
  }
}

TEST_F(UploadArchiveTest, XzIsHeldToABoundOfMemory) {
  std::string bytes = TestArchive(Format::kTar, Filter::kXz).File("f", "x").Bytes();
  EXPECT_TRUE(UploadBytes("control", bytes));
  // The header of the first block: its size in words, flags, filter, size of its properties, and
  // the dictionary, here made one of 3 GiB; the checksum at its end.
  constexpr std::size_t kHeader = 12;
  constexpr std::size_t kDictionary = kHeader + 4;
  const std::size_t size = (static_cast<std::size_t>(bytes[kHeader]) + 1) * 4;
  bytes[kDictionary] = 39;
  const auto* header = reinterpret_cast<const std::uint8_t*>(bytes.data() + kHeader);
  const std::uint32_t checksum = ::lzma_crc32(header, size - sizeof checksum, 0);
  std::memcpy(bytes.data() + kHeader + size - sizeof checksum, &checksum, sizeof checksum);
  const auto uploaded = UploadBytes("t", bytes);
  ASSERT_FALSE(uploaded.has_value());
  EXPECT_THAT(uploaded.error().message, HasSubstr("128 MiB"));
}

// Whatever a damaged archive is taken for, it is an answer, and nothing of it lands elsewhere.
TEST_F(UploadArchiveTest, DamagedArchivesDoNoHarm) {
  std::minstd_rand random(1);  // The same damage every time.
  for (const Format format : {Format::kTar, Format::kZip}) {
    for (const Filter filter : {Filter::kNone, Filter::kGzip, Filter::kXz, Filter::kZstd}) {
      if (format == Format::kZip && filter != Filter::kNone) continue;
      TestArchive archive(format, filter);
      archive.Directory("d").File("d/f", std::string(3000, 'x')).Symlink("d/l", "f");
      if (format == Format::kTar) archive.Sparse("s", 1 << 16).HardLink("h", "d/f");
      const std::string whole = archive.Bytes();
      for (int round = 0; round < 200; ++round) {
        std::string bytes = whole;
        for (int i = 0; i < 4; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
        if (round % 4 == 0) bytes.resize(random() % bytes.size());
        (void)UploadBytes("t", bytes, {.max_bytes = Bytes{1 << 20}});
        (void)workspace_.Remove("t", true);
      }
      EXPECT_THAT(tree_.Names(), IsEmpty());
    }
  }
}

TEST_F(UploadArchiveTest, OtherFormatsAreNotRead) {
  // A shell archive, a cpio archive and one compressed twice, all of which libarchive could read.
  TestArchive inner(Format::kTar, Filter::kGzip);
  inner.File("f", std::string(10'000, 'x'));
  archive* const outer = ::archive_write_new();
  std::array<char, 65536> twice{};
  std::size_t size = 0;
  (void)::archive_write_set_format_raw(outer);
  (void)::archive_write_add_filter_gzip(outer);
  ASSERT_EQ(::archive_write_open_memory(outer, twice.data(), twice.size(), &size), 0);
  archive_entry* const entry = ::archive_entry_new();
  ::archive_entry_set_filetype(entry, AE_IFREG);
  ASSERT_EQ(::archive_write_header(outer, entry), 0);
  const std::string& once = inner.Bytes();
  (void)::archive_write_data(outer, once.data(), once.size());
  ::archive_entry_free(entry);
  (void)::archive_write_close(outer);
  (void)::archive_write_free(outer);
  for (const std::string& bytes : {std::string(twice.data(), size), std::string("070707") + once,
                                   std::string("!<arch>\n") + once}) {
    EXPECT_FALSE(UploadBytes("t", bytes).has_value());
  }
  EXPECT_TRUE(UploadBytes("t", once)) << "the control";
}

/// Takes two milliseconds for each read.
class LateSource final : public ByteSource {
 public:
  explicit LateSource(std::string_view bytes) : bytes_(bytes) {}
  Result<std::size_t> Read(std::span<std::byte> into) override {
    const auto due = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
    while (std::chrono::steady_clock::now() < due) {
    }
    return bytes_.Read(into);
  }

 private:
  TrickleSource bytes_;
};

TEST_F(UploadArchiveTest, LimitsOfTheCallHold) {
  TestArchive archive;
  archive.File("a", std::string(1000, 'a')).File("b", std::string(1000, 'b'));
  const std::string bytes = archive.Bytes();
  const auto by = [&](const ArchiveLimits& limits) {
    const auto uploaded = UploadBytes("t", bytes, limits);
    return uploaded ? std::string("fits") : uploaded.error().field;
  };
  EXPECT_EQ(by({.max_entries = 1}), "maxEntries");
  EXPECT_EQ(by({.max_bytes = Bytes{1999}}), "maxBytes");
  EXPECT_THAT(tree_.Names(), IsEmpty());
  LateSource late(bytes);
  const auto uploaded = workspace_.UploadArchive("t", late, {.timeout = Millis(1)});
  ASSERT_FALSE(uploaded.has_value());
  EXPECT_EQ(uploaded.error().field, "timeout");
  EXPECT_THAT(tree_.Names(), IsEmpty());
  EXPECT_EQ(by({.max_entries = 2, .max_bytes = Bytes{2000}}), "fits");
  EXPECT_EQ(by({.max_entries = 0, .max_bytes = Bytes{0}, .timeout = Millis(0)}), "fits");
}

TEST_F(UploadArchiveTest, HolesStayHolesAndCountByTheirSize) {
  constexpr la_int64_t kSize = 64 << 20;
  TestArchive archive;
  archive.Sparse("s", kSize);
  const std::string bytes = archive.Bytes();
  ASSERT_LT(bytes.size(), 1U << 20);
  EXPECT_FALSE(UploadBytes("t", bytes, {.max_bytes = Bytes{1 << 20}}).has_value());
  const auto uploaded = UploadBytes("t", bytes);
  ASSERT_TRUE(uploaded) << uploaded.error().message;
  EXPECT_EQ(tree_.Lstat("t/s").st_size, kSize);
  EXPECT_LT(tree_.Lstat("t/s").st_blocks * 512, kSize / 8);
}

/// Grants so many bytes, and remembers how they were asked for.
class SmallAccount final : public DiskAccount {
 public:
  explicit SmallAccount(std::uint64_t quota) : quota_(quota) {}
  Result<std::unique_ptr<DiskTicket>> Reserve(BorrowedFd, const DiskChange& change) override {
    if (used_ + change.more.bytes > quota_ + change.less.bytes) {
      return std::unexpected(QuotaExceeded(quota_, used_, change.more));
    }
    used_ += change.more.bytes;
    used_ -= std::min(used_, change.less.bytes);
    return std::make_unique<Ticket>();
  }
  void NoteRemoval() override {}
  std::uint64_t used() const { return used_; }

 private:
  class Ticket final : public DiskTicket {
    void Done() override {}
  };
  std::uint64_t quota_;
  std::uint64_t used_ = 0;
};

TEST_F(UploadArchiveTest, RoomIsAskedForBeforeAnythingIsWritten) {
  const auto account = std::make_shared<SmallAccount>(100'000);
  const Workspace workspace(tree_.Open(), {}, account);
  const auto upload = [&](std::string_view bytes) {
    TrickleSource source(bytes);
    return workspace.UploadArchive("", source);
  };
  const std::string large = TestArchive().File("large", std::string(100'001, 'x')).Bytes();
  auto uploaded = upload(large);
  ASSERT_FALSE(uploaded.has_value());
  EXPECT_EQ(uploaded.error().code, ErrorCode::kDiskQuotaExceeded);
  EXPECT_EQ(account->used(), 0U);
  // A zip that is read as it comes may not say sizes before: it is stopped on its way.
  TestArchive zip(Format::kZip, Filter::kNone);
  zip.File("bomb", std::string(50 << 20, '\0'));
  uploaded = upload(zip.Bytes());
  ASSERT_FALSE(uploaded.has_value());
  EXPECT_EQ(uploaded.error().code, ErrorCode::kDiskQuotaExceeded);
  EXPECT_THAT(tree_.Names(), IsEmpty());
  const std::string small = TestArchive().File("small", std::string(50'000, 'x')).Bytes();
  EXPECT_TRUE(upload(small));
  // What is replaced is given back.
  EXPECT_TRUE(upload(small));
}

TEST_F(UploadArchiveTest, ErrorsOfTheSourceComeThrough) {
  class Broken final : public ByteSource {
   public:
    Result<std::size_t> Read(std::span<std::byte>) override {
      return std::unexpected(Error{.code = ErrorCode::kUnauthorized, .message = "no"});
    }
  };
  Broken source;
  const auto uploaded = workspace_.UploadArchive("t", source);
  ASSERT_FALSE(uploaded.has_value());
  EXPECT_EQ(uploaded.error().code, ErrorCode::kUnauthorized);
}

// A directory that somebody replaces by a link, again and again, while files go into it.
TEST_F(UploadArchiveTest, SwappedDirectoriesLeadNowhereElse) {
  outer_.Mkdir("target");
  tree_.Mkdir("d");
  TestArchive archive;
  for (int i = 0; i < 400; ++i) archive.File("d/f" + std::to_string(i), "x");
  const std::string bytes = archive.Bytes();
  tree_.Link(outer_.At("target"), "link");
  std::atomic<bool> stop = false;
  std::atomic<int> swaps = 0;
  std::thread swapper([&] {
    while (!stop) {
      const std::string a = tree_.At("d");
      const std::string b = tree_.At("link");
      if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) ++swaps;
    }
  });
  int refused = 0;
  int done = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while ((refused == 0 || done + refused < 20) && std::chrono::steady_clock::now() < deadline) {
    UploadBytes("", bytes) ? ++done : ++refused;
  }
  stop = true;
  swapper.join();
  EXPECT_GT(swaps, 0);
  EXPECT_GT(refused, 0) << "the control: it has been in the way";
  EXPECT_THAT(outer_.Names("target"), IsEmpty());
}

}  // namespace
}  // namespace palmshed::workspace
