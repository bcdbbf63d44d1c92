#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "workspace/new_file.h"
#include "workspace/test_tree.h"
#include "workspace/workspace.h"

namespace palmshed::workspace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TransferTest : public ::testing::Test {
 protected:
  TestTree host_;
  TestTree tree_;
  Workspace workspace_{tree_.Open()};
};

std::string EveryByte() {
  std::string all;
  for (int i = 0; i < 4096 * 256; ++i) all += static_cast<char>(i & 0xff);
  return all;
}

TEST_F(TransferTest, EveryByteGoesUpAndDown) {  // C011
  host_.Write("all", EveryByte(), 0751);
  ASSERT_TRUE(workspace_.UploadFile(host_.At("all"), "a/b/all"));
  EXPECT_EQ(tree_.Read("a/b/all"), EveryByte());
  EXPECT_EQ(tree_.Mode("a/b/all"), 0751U);
  ASSERT_TRUE(workspace_.DownloadFile("a/b/all", host_.At("back")));
  EXPECT_EQ(host_.Read("back"), EveryByte());
  EXPECT_EQ(host_.Mode("back"), 0751U);
}

TEST_F(TransferTest, SpecialModeBitsAreDroppedBothWays) {
  host_.Write("f", "x", 06755);
  host_.Mkdir("t", 03755);
  host_.Write("t/f", "x", 04711);
  ASSERT_TRUE(workspace_.UploadFile(host_.At("f"), "f"));
  ASSERT_TRUE(workspace_.UploadFile(host_.At("t"), "t"));
  EXPECT_EQ(tree_.Mode("f"), 0755U);
  EXPECT_EQ(tree_.Mode("t"), 0755U);
  EXPECT_EQ(tree_.Mode("t/f"), 0711U);
  ASSERT_EQ(::chmod(tree_.At("f").c_str(), 06755), 0);
  ASSERT_TRUE(workspace_.DownloadFile("f", host_.At("back")));
  EXPECT_EQ(host_.Mode("back"), 0755U);
}

TEST_F(TransferTest, HolesStayHoles) {
  constexpr off_t kSize = 8 << 20;
  const UniqueFd fd(::open(tree_.At("s").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_EQ(::pwrite(fd.get(), "middle", 6, kSize / 2), 6);
  ASSERT_EQ(::ftruncate(fd.get(), kSize), 0);
  ASSERT_TRUE(workspace_.DownloadFile("s", host_.At("s")));
  EXPECT_EQ(host_.Lstat("s").st_size, kSize);
  EXPECT_LT(host_.Lstat("s").st_blocks * 512, kSize / 8);
  EXPECT_EQ(host_.Read("s").substr(kSize / 2, 6), "middle");
}

TEST_F(TransferTest, AFileThatSaysItIsEmptyIsReadToItsEnd) {
  ASSERT_TRUE(workspace_.UploadFile("/proc/self/status", "status"));
  EXPECT_THAT(tree_.Read("status"), HasSubstr("Pid:"));
}

TEST_F(TransferTest, UploadsATree) {
  host_.Mkdir("t", 0750);
  host_.Mkdir("t/sub", 0555);
  ASSERT_EQ(::chmod(host_.At("t/sub").c_str(), 0755), 0);
  host_.Write("t/sub/\xff name", "x", 0600);
  host_.Link("../sub", "t/sub/up");
  host_.Link("nowhere", "t/dangling");
  ASSERT_EQ(::chmod(host_.At("t/sub").c_str(), 0555), 0);
  const auto uploaded = workspace_.UploadFile(host_.At("t"), "x/t/");
  ASSERT_TRUE(uploaded) << uploaded.error().message;
  EXPECT_THAT(tree_.Names("x"), ElementsAre("t"));
  EXPECT_EQ(tree_.Mode("x/t"), 0750U);
  EXPECT_EQ(tree_.Mode("x/t/sub"), 0555U);
  EXPECT_EQ(tree_.Read("x/t/sub/\xff name"), "x");
  EXPECT_EQ(tree_.Mode("x/t/sub/\xff name"), 0600U);
  EXPECT_EQ(tree_.Target("x/t/sub/up"), "../sub");
  EXPECT_EQ(tree_.Target("x/t/dangling"), "nowhere");
}

TEST_F(TransferTest, TimesOfModificationAreKept) {
  host_.Mkdir("t");
  host_.Write("t/f", "x");
  const timespec times[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1'000'000'000, .tv_nsec = 5}};
  ASSERT_EQ(::utimensat(AT_FDCWD, host_.At("t/f").c_str(), times, 0), 0);
  ASSERT_EQ(::utimensat(AT_FDCWD, host_.At("t").c_str(), times, 0), 0);
  ASSERT_TRUE(workspace_.UploadFile(host_.At("t"), "t"));
  EXPECT_EQ(tree_.Lstat("t/f").st_mtime, 1'000'000'000);
  EXPECT_EQ(tree_.Lstat("t").st_mtime, 1'000'000'000);
}

TEST_F(TransferTest, UploadsIntoADirectoryThatExists) {
  tree_.Mkdir("t", 0700);
  tree_.Write("t/kept", "kept");
  tree_.Write("t/f", "old");
  tree_.Link("t", "in");
  host_.Mkdir("t", 0755);
  host_.Write("t/f", "new");
  ASSERT_TRUE(workspace_.UploadFile(host_.At("t"), "in"));
  EXPECT_THAT(tree_.Names("t"), ElementsAre("f", "kept"));
  EXPECT_EQ(tree_.Read("t/f"), "new");
  EXPECT_EQ(tree_.Mode("t"), 0700U);
  ASSERT_TRUE(workspace_.UploadFile(host_.At("t"), ""));
  EXPECT_EQ(tree_.Read("f"), "new");
}

TEST_F(TransferTest, LinksThatLeaveAreRefusedByName) {
  for (const auto target : {"/etc/passwd", "../../x", "a/../../../x"}) {
    TestTree host;
    host.Mkdir("t");
    host.Write("t/f", "x");
    host.Link(target, "t/bad");
    const auto uploaded = workspace_.UploadFile(host.At("t"), "t");
    ASSERT_FALSE(uploaded) << target;
    EXPECT_EQ(uploaded.error().code, ErrorCode::kFsError);
    EXPECT_THAT(uploaded.error().message, HasSubstr("t/bad is a link that leaves"));
    EXPECT_THAT(tree_.Names(), IsEmpty()) << "nothing of it stays";
  }
  host_.Mkdir("t");
  host_.Link("../x", "t/fine");
  EXPECT_TRUE(workspace_.UploadFile(host_.At("t"), "t")) << "control";
}

TEST_F(TransferTest, SpecialFilesInATreeAreRefusedByName) {
  host_.Mkdir("t");
  host_.Fifo("t/pipe");
  const auto uploaded = workspace_.UploadFile(host_.At("t"), "t");
  ASSERT_FALSE(uploaded);
  EXPECT_THAT(uploaded.error().message, HasSubstr("t/pipe is neither"));
  EXPECT_EQ(workspace_.UploadFile(host_.At("t/pipe"), "p").error().code, ErrorCode::kFsError);
  EXPECT_EQ(workspace_.UploadFile("/dev/null", "p").error().code, ErrorCode::kFsError);
  EXPECT_THAT(tree_.Names(), IsEmpty());
}

TEST_F(TransferTest, ATreeThatHoldsTheWorkspaceIsRefused) {
  host_.Mkdir("w");
  host_.Write("f", "x");
  const Workspace inner(UniqueFd(::open(host_.At("w").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)));
  EXPECT_THAT(inner.UploadFile(host_.path(), "t").error().message, HasSubstr("copied into"));
  EXPECT_THAT(inner.UploadFile(host_.At("w"), "t").error().message, HasSubstr("copied into"));
  EXPECT_THAT(host_.Names("w"), IsEmpty());
  host_.Mkdir("w/sub");
  EXPECT_THAT(inner.UploadFile(host_.At("w/sub"), "sub/x").error().message,
              HasSubstr("copied into"));
  EXPECT_THAT(host_.Names("w/sub"), IsEmpty());
}

TEST_F(TransferTest, DepthOfATreeIsBounded) {
  std::string path = "d";
  for (int i = 0; i < 150; ++i, path += "/d") host_.Mkdir(path);
  const auto uploaded = workspace_.UploadFile(host_.At("d"), "d");
  ASSERT_FALSE(uploaded);
  EXPECT_THAT(uploaded.error().message, HasSubstr("deeper than 100"));
  EXPECT_THAT(tree_.Names(), IsEmpty());
}

TEST_F(TransferTest, ThousandsOfFiles) {  // C092
  const TestTree host = TestTree::InMemory();
  const TestTree tree = TestTree::InMemory();
  const Workspace workspace(tree.Open());
  host.Write("file", "content");
  host.Mkdir("m");
  for (int i = 0; i < 100; ++i) {
    const std::string dir = "m/" + std::to_string(i);
    host.Mkdir(dir);
    for (int j = 0; j < 100; ++j) host.HardLink("file", dir + "/" + std::to_string(j));
  }
  ASSERT_TRUE(workspace.UploadFile(host.At("m"), "m"));
  EXPECT_EQ(workspace.List("m")->size(), 100U);
  EXPECT_EQ(workspace.List("m/99")->size(), 100U);
  EXPECT_EQ(tree.Read("m/99/99"), "content");
}

TEST_F(TransferTest, HostErrorsNameTheHostPath) {
  EXPECT_EQ(workspace_.UploadFile(host_.At("no"), "f").error().code, ErrorCode::kNotFound);
  EXPECT_THAT(workspace_.UploadFile(host_.At("no"), "f").error().message, HasSubstr("/no"));
  EXPECT_EQ(workspace_.UploadFile("", "f").error().field, "hostPath");
  EXPECT_EQ(workspace_.UploadFile(std::string("a\0b", 3), "f").error().field, "hostPath");
  tree_.Write("f", "x");
  EXPECT_EQ(workspace_.DownloadFile("f", host_.At("no/f")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(workspace_.DownloadFile("f", host_.path() + "/").error().code, ErrorCode::kFsError);
}

TEST_F(TransferTest, DownloadReplacesRegularFilesOnly) {
  tree_.Write("f", "new");
  host_.Write("f", "old");
  host_.Link("f", "link");
  host_.Mkdir("d");
  host_.Fifo("pipe");
  ASSERT_TRUE(workspace_.DownloadFile("f", host_.At("f")));
  EXPECT_EQ(host_.Read("f"), "new");
  for (const auto name : {"link", "d", "pipe"}) {
    const auto got = workspace_.DownloadFile("f", host_.At(name));
    ASSERT_FALSE(got) << name;
    EXPECT_EQ(got.error().code, ErrorCode::kFsError) << name;
  }
  EXPECT_EQ(host_.Target("link"), "f");
  EXPECT_THAT(host_.Names(), ElementsAre("d", "f", "link", "pipe"));
}

TEST_F(TransferTest, DownloadTakesRegularFilesOnly) {
  tree_.Mkdir("d");
  EXPECT_EQ(workspace_.DownloadFile("d", host_.At("d")).error().message, "d is a directory");
  EXPECT_EQ(workspace_.DownloadFile("no", host_.At("d")).error().code, ErrorCode::kNotFound);
  EXPECT_THAT(host_.Names(), IsEmpty());
}

TEST_F(TransferTest, UnpublishedFilesVanish) {
  {
    const auto file = NewFile::Create(tree_.fd(), std::nullopt);
    ASSERT_TRUE(file);
    EXPECT_EQ(tree_.Names().size(), 1U);
  }
  EXPECT_THAT(tree_.Names(), IsEmpty());
}

}  // namespace
}  // namespace palmshed::workspace
