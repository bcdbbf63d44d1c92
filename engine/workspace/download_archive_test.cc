#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/sys.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/files.h"
#include "palmshed/streams.h"
#include "palmshed/units.h"
#include "workspace/archive_reader.h"
#include "workspace/test_tree.h"
#include "workspace/workspace.h"

namespace palmshed::workspace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::UnorderedElementsAre;

class DownloadArchiveTest : public ::testing::Test {
 protected:
  /// The entries of the archive by name; empty: there is none.
  std::map<std::string, ArchiveEntry> Download(std::string_view path = "") {
    MemorySink sink;
    const auto downloaded = workspace_.DownloadArchive(path, sink);
    EXPECT_TRUE(downloaded) << downloaded.error().message;
    if (!downloaded) return {};
    summary_ = *downloaded;
    return EntriesOf(sink.bytes());
  }
  static std::map<std::string, ArchiveEntry> EntriesOf(std::string_view bytes) {
    std::map<std::string, ArchiveEntry> entries;
    MemorySource source(AsBytes(bytes));
    auto archive = ArchiveReader::Open(source);
    while (archive) {
      const auto entry = archive->Next();
      EXPECT_TRUE(entry) << entry.error().message;
      if (!entry || !*entry) break;
      entries[(*entry)->name] = **entry;
    }
    return entries;
  }

  TestTree outer_;
  TestTree tree_;
  Workspace workspace_{tree_.Open()};
  ArchiveSummary summary_;
};

TEST_F(DownloadArchiveTest, TreeComesDownAndGoesUpAgain) {
  const std::string long_name(200, 'n');
  tree_.Mkdir("t", 0750);
  tree_.Mkdir("t/sub", 0700);
  tree_.Write("t/sub/all", std::string(70'000, 'a'), 0640);
  tree_.Write("t/" + long_name, "long");
  tree_.Write("t/\xff caf\xc3\xa9", "bytes", 0755);
  tree_.Link("sub/all", "t/l");
  tree_.Mkdir("t/empty");
  MemorySink sink;
  const auto downloaded = workspace_.DownloadArchive("t", sink);
  ASSERT_TRUE(downloaded) << downloaded.error().message;
  EXPECT_EQ(downloaded->entries, 6U);
  EXPECT_EQ(downloaded->bytes, Bytes{70'000 + 4 + 5});
  EXPECT_EQ(downloaded->skipped, 0U);
  MemorySource source(AsBytes(sink.bytes()));
  ASSERT_TRUE(workspace_.UploadArchive("again", source));
  EXPECT_EQ(tree_.Names("again"), tree_.Names("t"));
  EXPECT_EQ(tree_.Read("again/sub/all"), std::string(70'000, 'a'));
  EXPECT_EQ(tree_.Mode("again/sub/all"), 0640U);
  EXPECT_EQ(tree_.Mode("again/sub"), 0700U);
  EXPECT_EQ(tree_.Read("again/" + long_name), "long");
  EXPECT_EQ(tree_.Read("again/\xff caf\xc3\xa9"), "bytes");
  EXPECT_EQ(tree_.Target("again/l"), "sub/all");
  EXPECT_EQ(tree_.Lstat("again/sub/all").st_mtime, tree_.Lstat("t/sub/all").st_mtime);
}

// Found by the fuzzer: such a name was taken for what other containers begin with.
TEST_F(DownloadArchiveTest, FirstNameMayBeginAsOtherContainersDo) {
  for (const std::string name : {"PK\x03\x04", "PK\x05\x06 and more", "\x1f\x8b\x08",
                                 "\xfd"
                                 "7zXZ"}) {
    SCOPED_TRACE(name);
    tree_.Mkdir("t");
    tree_.Write("t/" + name, "text");
    MemorySink sink;
    ASSERT_TRUE(workspace_.DownloadArchive("t", sink));
    ASSERT_TRUE(sink.bytes().starts_with(name));
    EXPECT_THAT(EntriesOf(sink.bytes()), ElementsAre(Key(name)));
    MemorySource source(AsBytes(sink.bytes()));
    const auto went_up = workspace_.UploadArchive("again", source);
    ASSERT_TRUE(went_up) << went_up.error().message;
    EXPECT_EQ(workspace_.ReadFile("again/" + name).value_or(""), "text");
    ASSERT_TRUE(workspace_.Remove("t", true) && workspace_.Remove("again", true));
  }
}

TEST_F(DownloadArchiveTest, LinksAreRecordedAndNeverFollowed) {
  outer_.Write("secret", "secret");
  tree_.Link(outer_.At("secret"), "l");
  tree_.Link(outer_.path(), "d");
  const auto entries = Download();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries.at("l").kind, EntryKind::kSymlink);
  EXPECT_EQ(entries.at("l").target, outer_.At("secret"));
  EXPECT_EQ(entries.at("d").kind, EntryKind::kSymlink);
}

TEST_F(DownloadArchiveTest, SpecialModeBitsAreDropped) {
  tree_.Write("f", "x", 06755);
  tree_.Mkdir("d", 03755);
  const auto entries = Download();
  EXPECT_EQ(entries.at("f").mode, 0755U);
  EXPECT_EQ(entries.at("d/").mode, 0755U);
}

TEST_F(DownloadArchiveTest, SpecialFilesAreLeftOutAndCounted) {
  tree_.Mkdir("d");
  tree_.Fifo("d/fifo");
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  tree_.At("s").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  tree_.Write("f", "x");
  const auto entries = Download();
  EXPECT_EQ(entries.size(), 2U);
  EXPECT_EQ(summary_.entries, 2U);
  EXPECT_EQ(summary_.skipped, 2U);
  EXPECT_THAT(summary_.skipped_paths, UnorderedElementsAre("d/fifo", "s"));
}

TEST_F(DownloadArchiveTest, OnlyADirectoryCanBeDownloaded) {
  outer_.Write("f", "x");
  tree_.Write("f", "x");
  tree_.Link(outer_.path(), "out");
  MemorySink sink;
  for (const char* path : {"f", "out", "..", "/"}) {
    const auto downloaded = workspace_.DownloadArchive(path, sink);
    ASSERT_FALSE(downloaded.has_value()) << path;
    EXPECT_EQ(downloaded.error().code, ErrorCode::kFsError) << path;
  }
  const auto missing = workspace_.DownloadArchive("missing", sink);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(sink.bytes(), IsEmpty());
}

TEST_F(DownloadArchiveTest, LimitsOfTheCallHold) {
  tree_.Write("a", std::string(1000, 'a'));
  tree_.Write("b", std::string(1000, 'b'));
  const auto by = [&](const ArchiveLimits& limits) {
    MemorySink sink;
    const auto downloaded = workspace_.DownloadArchive("", sink, limits);
    return downloaded ? std::string("fits") : downloaded.error().field;
  };
  EXPECT_EQ(by({.max_entries = 1}), "maxEntries");
  EXPECT_EQ(by({.max_bytes = Bytes{1999}}), "maxBytes");
  EXPECT_EQ(by({.max_entries = 2, .max_bytes = Bytes{2000}}), "fits");
  EXPECT_EQ(by({.max_entries = 0, .max_bytes = Bytes{0}, .timeout = Millis(0)}), "fits");
  // A file that is one large hole is refused before any of it is sent.
  ASSERT_EQ(::truncate(tree_.At("a").c_str(), off_t{1} << 40), 0);
  EXPECT_EQ(by({}), "maxBytes");
}

/// Does something once, when the first bytes come.
class ActingSink final : public ByteSink {
 public:
  explicit ActingSink(std::function<void()> act) : act_(std::move(act)) {}
  Result<void> Write(std::span<const std::byte>) override {
    if (act_) act_();
    act_ = nullptr;
    return {};
  }

 private:
  std::function<void()> act_;
};

TEST_F(DownloadArchiveTest, TakesNoLongerThanItMay) {
  tree_.Write("f", std::string(1 << 20, 'f'));
  ActingSink late([] {
    const auto due = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
    while (std::chrono::steady_clock::now() < due) {
    }
  });
  const auto downloaded = workspace_.DownloadArchive("", late, {.timeout = Millis(1)});
  ASSERT_FALSE(downloaded.has_value());
  EXPECT_EQ(downloaded.error().field, "timeout");
}

TEST_F(DownloadArchiveTest, FileThatGetsShorterIsAnErrorAndOneThatGrowsIsNot) {
  tree_.Write("f", std::string(4 << 20, 'f'));
  ActingSink grow([&] {
    const UniqueFd fd(::open(tree_.At("f").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    EXPECT_EQ(::write(fd.get(), "more", 4), 4);
  });
  const auto grown = workspace_.DownloadArchive("", grow);
  ASSERT_TRUE(grown) << grown.error().message;
  EXPECT_EQ(grown->bytes, Bytes{4 << 20});
  ActingSink shrink([&] { EXPECT_EQ(::truncate(tree_.At("f").c_str(), 1 << 20), 0); });
  const auto shrunk = workspace_.DownloadArchive("", shrink);
  ASSERT_FALSE(shrunk.has_value());
  EXPECT_EQ(shrunk.error().code, ErrorCode::kFsError);
  EXPECT_THAT(shrunk.error().message, HasSubstr("f got shorter"));
}

TEST_F(DownloadArchiveTest, ErrorsOfTheSinkComeThrough) {
  tree_.Write("f", std::string(1 << 20, 'f'));
  auto pipe = sys::Pipe();
  ASSERT_TRUE(pipe);
  pipe->first.reset();
  // Nobody reads: SIGPIPE would end this test.
  ASSERT_NE(::signal(SIGPIPE, SIG_DFL), SIG_ERR);
  DescriptorSink sink(pipe->second.get());
  const auto downloaded = workspace_.DownloadArchive("", sink);
  ASSERT_FALSE(downloaded.has_value());
  EXPECT_EQ(downloaded.error().sys_errno, EPIPE);
  EXPECT_EQ(downloaded.error().code, ErrorCode::kFsError);
}

TEST_F(DownloadArchiveTest, NonBlockingDescriptorIsWaitedFor) {
  tree_.Write("f", std::string(1 << 20, 'f'));
  auto pipe = sys::Pipe();
  ASSERT_TRUE(pipe);
  ASSERT_TRUE(sys::SetNonBlocking(pipe->second.get()));
  ASSERT_TRUE(sys::SetNonBlocking(pipe->first.get()));
  std::thread writer([&] {
    DescriptorSink sink(pipe->second.get());
    EXPECT_TRUE(workspace_.DownloadArchive("", sink));
    pipe->second.reset();
  });
  DescriptorSource source(pipe->first.get());
  EXPECT_TRUE(Workspace(outer_.Open()).UploadArchive("", source));
  writer.join();
  EXPECT_EQ(outer_.Lstat("f").st_size, 1 << 20);
}

// A directory that somebody replaces by a link to a directory outside, again and again.
TEST_F(DownloadArchiveTest, SwappedDirectoriesLeadNowhereElse) {
  outer_.Write("f", "outside!");
  tree_.Mkdir("d");
  tree_.Write("d/f", "inside");
  tree_.Link(outer_.path(), "link");
  std::atomic<bool> stop = false;
  std::thread swapper([&] {
    const std::string a = tree_.At("d");
    const std::string b = tree_.At("link");
    while (!stop) (void)::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
  });
  bool seen_as_link = false;
  bool seen_as_directory = false;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (int i = 0; i < 200 || !(seen_as_link && seen_as_directory); ++i) {
    if (std::chrono::steady_clock::now() > deadline) break;
    MemorySink sink;
    if (!workspace_.DownloadArchive("", sink)) continue;
    EXPECT_THAT(sink.bytes(), ::testing::Not(HasSubstr("outside!")));
    const auto entries = EntriesOf(sink.bytes());
    seen_as_link = seen_as_link || entries.contains("d");
    seen_as_directory = seen_as_directory || entries.contains("d/");
  }
  stop = true;
  swapper.join();
  EXPECT_TRUE(seen_as_link);
  EXPECT_TRUE(seen_as_directory);
}

}  // namespace
}  // namespace palmshed::workspace
