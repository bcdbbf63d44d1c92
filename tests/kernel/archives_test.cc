// Archives through the API, while the program inside is in the way.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/eventually.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// What every script begins with: `add(name, content="", **members of TarInfo)` and `t`.
constexpr char kPrelude[] = R"(
import io, sys, tarfile
t = tarfile.open(sys.argv[1], sys.argv[2])
def add(name, content=b"", **members):
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    for key, value in members.items():
        setattr(entry, key, value)
    t.addfile(entry, io.BytesIO(content))
)";

class Archives : public KernelTest {
 protected:
  /// A tar archive that a Python script makes.
  std::string Pack(const std::string& script, const std::string& mode = "w") const {
    const std::string path = host_.path() + "/archive";
    const std::string whole = kPrelude + script + "\nt.close()\n";
    const HostRun run = RunOnHost({"python3", "-c", whole, path, mode}, As::kSelf);
    EXPECT_EQ(run.exit_code, 0) << run.out;
    return path;
  }
  static Result<ArchiveSummary> Upload(Sandbox& sandbox, const std::string& path,
                                       const std::string& archive) {
    const int fd = ::open(archive.c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_GE(fd, 0);
    DescriptorSource source(fd);
    auto uploaded = sandbox.UploadArchive(path, source);
    (void)::close(fd);
    return uploaded;
  }

  const TempDir host_{0777};
};

TEST_F(Archives, GoUpAndAreTheProgramsOwn) {
  const std::string archive = Pack(R"(
add("bin/run", b"#!/bin/sh\necho ran > ../out\n", mode=0o6755, uid=0, gid=0)
add("data", bytes(range(256)) * 1000, mode=0o600)
add("link", type=tarfile.SYMTYPE, linkname="data")
add("again", type=tarfile.LNKTYPE, linkname="data"))",
                                   "w:gz");
  Sandbox sandbox = MakeSandbox();
  EXPECT_EQ(Must(Upload(sandbox, "project", archive)).entries, 4U);
  EXPECT_THAT(ExecShell(sandbox,
                        "cd project/bin && ./run && cat ../out && stat -c '%u %a' run ../data && "
                        "stat -c '%h' ../data && cmp ../data ../link && touch ../new"),
              ExitedWith(0, "ran\n1000 755\n1000 600\n2\n"));
}

TEST_F(Archives, ZipsKeepNamesModesAndLinks) {
  const std::string archive = host_.path() + "/zip";
  const HostRun made = RunOnHost({"python3", "-c", R"(
import sys, zipfile
z = zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED)
def add(name, content, mode):
    entry = zipfile.ZipInfo(name)
    entry.create_system = 3
    entry.external_attr = mode << 16
    z.writestr(entry, content)
add("caf\u00e9/run", "#!/bin/sh\necho ran\n", 0o104755)
add("link", "caf\u00e9/run", 0o120777)
z.close())",
                                  archive},
                                 As::kSelf);
  ASSERT_EQ(made.exit_code, 0) << made.out;
  Sandbox sandbox = MakeSandbox();
  EXPECT_EQ(Must(Upload(sandbox, "z", archive)).entries, 2U);
  EXPECT_THAT(ExecShell(sandbox, "cd z && ./caf\xc3\xa9/run && ./link && stat -c %a caf*/run"),
              ExitedWith(0, "ran\nran\n755\n"));
}

TEST_F(Archives, ComeDownAsTheProgramLeftThem) {
  Sandbox sandbox = MakeSandbox();
  ASSERT_EQ(ExecShell(sandbox,
                      "mkdir -p t/closed && echo secret > t/closed/f && ln -s /etc/passwd t/l && "
                      "mkfifo t/fifo && head -c 3000000 /dev/urandom > t/random && "
                      "sha256sum < t/random > sum && chmod 6711 t/random && chmod 0 t/closed")
                .exit_code,
            0);
  const std::string path = host_.path() + "/down";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  DescriptorSink sink(fd);
  const ArchiveSummary summary = Must(sandbox.DownloadArchive("t", sink));
  (void)::close(fd);
  EXPECT_EQ(summary.entries, 4U);
  EXPECT_THAT(summary.skipped_paths, ::testing::ElementsAre("fifo"));
  const HostRun listed = RunOnHost({"python3", "-c", R"(
import hashlib, sys, tarfile
t = tarfile.open(sys.argv[1], "r")
for entry in sorted(t, key=lambda entry: entry.name):
    print(entry.name, "%o" % entry.mode, entry.linkname, entry.type.decode())
print(t.extractfile("closed/f").read(), hashlib.sha256(t.extractfile("random").read()).hexdigest()))",
                                    path},
                                   As::kSelf);
  std::string sum = Must(sandbox.ReadFile("sum"));
  sum.resize(64);
  EXPECT_EQ(listed.out,
            "closed 0  5\nclosed/f 644  0\nl 777 /etc/passwd 2\nrandom 711  0\nb'secret\\n' " +
                sum + "\n");
}

TEST_F(Archives, FileClosedToItsOwnerEndsADownloadUnlessRootTakesIt) {
  Sandbox sandbox = MakeSandbox();
  ASSERT_EQ(ExecShell(sandbox, "mkdir t; echo kept > t/open; echo hidden > t/shut; chmod 0 t/shut")
                .exit_code,
            0);
  MemorySink sink;
  const auto down = sandbox.DownloadArchive("t", sink);
  if (::geteuid() == 0) {
    EXPECT_EQ(Must(down).entries, 2U);
    EXPECT_THAT(sink.bytes(), HasSubstr("hidden"));
  } else {
    ASSERT_THAT(down, FailsWith(ErrorCode::kFsError));
    EXPECT_THAT(down.error().message, HasSubstr("shut"));
  }
  ASSERT_EQ(ExecShell(sandbox, "chmod 600 t/shut").exit_code, 0);
  EXPECT_EQ(Must(sandbox.DownloadArchive("t", sink)).entries, 2U);
}

TEST_F(Archives, HostileEntriesAreRefusedByName) {
  const std::string victim = host_.AddFile("victim", "untouched");
  Sandbox sandbox = MakeSandbox();
  for (const std::string& script : std::vector<std::string>{
           R"(add("../evil", b"x"))", R"(add("/evil", b"x"))", R"(add("d/../../evil", b"x"))",
           R"(add("evil", type=tarfile.SYMTYPE, linkname="/etc"))",
           R"(add("evil", type=tarfile.SYMTYPE, linkname="../../x"))",
           R"(add("evil", type=tarfile.LNKTYPE, linkname=")" + victim + R"("))",
           R"(add("evil", type=tarfile.LNKTYPE, linkname="../../x"))",
           R"(add("evil", type=tarfile.CHRTYPE, devmajor=1, devminor=3))",
           R"(add("evil", type=tarfile.BLKTYPE, devmajor=8, devminor=0))",
           R"(add("evil", type=tarfile.FIFOTYPE))",
           R"(add("l", type=tarfile.SYMTYPE, linkname="d"); add("l/evil", b"x"))"}) {
    const auto uploaded = Upload(sandbox, "fresh", Pack("add(\"first\", b\"x\")\n" + script));
    ASSERT_THAT(uploaded, FailsWith(ErrorCode::kFsError)) << script;
    EXPECT_THAT(uploaded.error().message, HasSubstr("evil"));
    EXPECT_THAT(sandbox.Stat("fresh"), FailsWith(ErrorCode::kNotFound)) << script;
  }
  EXPECT_EQ(Slurp(victim), "untouched");
  // The control.
  Must(Upload(sandbox, "fresh", Pack("add(\"first\", b\"x\")")));
}

TEST_F(Archives, PlantedLinksAreNotFollowed) {
  Sandbox sandbox = MakeSandbox();
  ASSERT_EQ(
      ExecShell(sandbox, "mkdir real; ln -s " + host_.path() + " out; ln -s real in").exit_code, 0);
  for (const char* path : {"out", "in"}) {
    const auto uploaded = Upload(sandbox, "", Pack(std::string("add(\"") + path + "/f\", b\"x\")"));
    EXPECT_THAT(uploaded, FailsWith(ErrorCode::kFsError)) << path;
  }
  EXPECT_THAT(Upload(sandbox, "out", Pack("add(\"f\", b\"x\")")), FailsWith(ErrorCode::kFsError));
  EXPECT_EQ(TreeOf(host_.path()), std::vector<std::string>{"archive"});
  EXPECT_TRUE(Must(sandbox.List("real")).empty());
  // The control.
  Must(Upload(sandbox, "", Pack("add(\"real/f\", b\"x\")")));
  EXPECT_EQ(Must(sandbox.ReadFile("real/f")), "x");
}

// The program swaps a directory for a link to the host while an archive goes into it.
TEST_F(Archives, RacingLinksNeverWin) {
  const TempDir outside(0777);
  const std::string archive = Pack("for i in range(200): add(\"real/f%d\" % i, b\"x\")\n");
  Sandbox sandbox = MakeSandbox();
  ASSERT_EQ(ExecShell(sandbox, "mkdir real; ln -s " + outside.path() + " evil").exit_code, 0);
  Execution swapping = Must(sandbox.Start({"./probe", "exchange", "real", "evil"}));
  ASSERT_TRUE(AwaitOutput(swapping, "ready"));
  int refused = 0;
  const auto upload_once = [&] {
    if (!Upload(sandbox, "", archive)) ++refused;
    return HasFailure() || refused >= 20;
  };
  EXPECT_TRUE(Eventually(upload_once, std::chrono::seconds(30))) << refused << " refused";
  Must(swapping.Cancel());
  (void)Must(swapping.Wait());
  EXPECT_TRUE(TreeOf(outside.path()).empty());
  // The control: nobody swaps any more, and whichever of the two is the directory takes it.
  const bool swapped = Must(sandbox.Stat("real")).type == FileType::kSymlink;
  if (swapped) Must(sandbox.Move("evil", "other"));
  if (swapped) Must(sandbox.Remove("real"));
  if (swapped) Must(sandbox.Move("other", "real"));
  Must(Upload(sandbox, "", archive));
  EXPECT_GE(Must(sandbox.List("real")).size(), 200U);
}

TEST_F(Archives, RacingLinksAreNeverReadThrough) {
  const TempDir outside(0755);
  outside.AddFile("x", "outside!");
  Sandbox sandbox = MakeSandbox();
  ASSERT_EQ(
      ExecShell(sandbox, "mkdir real; echo inside > real/x; ln -s " + outside.path() + " evil")
          .exit_code,
      0);
  Execution swapping = Must(sandbox.Start({"./probe", "exchange", "real", "evil"}));
  ASSERT_TRUE(AwaitOutput(swapping, "ready"));
  int with_content = 0;
  int rounds = 0;
  const auto download_once = [&] {
    MemorySink sink;
    (void)sandbox.DownloadArchive("", sink);  // May be told that the tree was changed.
    EXPECT_THAT(sink.bytes(), Not(HasSubstr("outside!")));
    if (sink.bytes().contains("inside")) ++with_content;
    return HasFailure() || (++rounds >= 100 && with_content > 0);
  };
  EXPECT_TRUE(Eventually(download_once, std::chrono::seconds(30))) << rounds;
  Must(swapping.Cancel());
  (void)Must(swapping.Wait());
}

TEST_F(Archives, BombsMeetTheQuota) {
  Sandbox sandbox = MakeSandbox({.disk_quota = 8_MiB});
  const std::string bomb = Pack("for i in range(20): add(\"f%d\" % i, bytes(1 << 20))", "w:xz");
  const auto uploaded = Upload(sandbox, "fresh", bomb);
  ASSERT_THAT(uploaded, FailsWith(ErrorCode::kDiskQuotaExceeded));
  EXPECT_THAT(sandbox.Stat("fresh"), FailsWith(ErrorCode::kNotFound));
  // The control, in the room that the bomb has given back.
  Must(Upload(sandbox, "fresh",
              Pack("for i in range(3): add(\"f%d\" % i, bytes(1 << 20))", "w:xz")));
  EXPECT_TRUE(Exec(sandbox, {"/bin/ls", "fresh/f2"}).ok());
}

TEST_F(Archives, OfADestroyedSandboxAreRefused) {
  Sandbox sandbox = MakeSandbox();
  Must(sandbox.Destroy());
  MemorySink sink;
  EXPECT_THAT(sandbox.DownloadArchive("", sink), FailsWith(ErrorCode::kBackendLost));
  MemorySource source({});
  EXPECT_THAT(sandbox.UploadArchive("", source), FailsWith(ErrorCode::kBackendLost));
}

}  // namespace
}  // namespace palmshed::tests
