#include "backends/native/etc_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/native/fake_tree.h"
#include "palmshed/options.h"

namespace palmshed::backends::native {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string ContentOf(const std::vector<EtcFile>& files, const std::string& path) {
  for (const EtcFile& file : files) {
    if (file.path == path) return file.content;
  }
  return "no such file";
}

bool Has(const std::vector<EtcFile>& files, const std::string& path, EtcFile::Kind kind) {
  for (const EtcFile& file : files) {
    if (file.path == path) return file.kind == kind;
  }
  return false;
}

std::vector<EtcFile> Made(Network network, const FakeTree& host) {
  return MadeEtcFiles(1000, network, host.root());
}

TEST(MadeEtcFiles, NameTheSandboxUser) {
  const FakeTree host;
  const auto files = MadeEtcFiles(4711, Network::kDisabled, host.root());
  EXPECT_THAT(ContentOf(files, "/etc/passwd"),
              HasSubstr("sandbox:x:4711:4711:sandbox:/workspace:/bin/sh\n"));
  EXPECT_THAT(ContentOf(files, "/etc/passwd"), HasSubstr("root:x:0:0:"));
  EXPECT_THAT(ContentOf(files, "/etc/passwd"), HasSubstr("nobody:x:65534:"));
  EXPECT_THAT(ContentOf(files, "/etc/group"), HasSubstr("sandbox:x:4711:\n"));
}

TEST(MadeEtcFiles, ResolveLocalhostWithoutAnybodysHelp) {  // C045
  const FakeTree host;
  const auto files = Made(Network::kDisabled, host);
  EXPECT_THAT(ContentOf(files, "/etc/hosts"), HasSubstr("127.0.0.1 localhost\n"));
  EXPECT_THAT(ContentOf(files, "/etc/hosts"), HasSubstr("::1 localhost "));
}

TEST(MadeEtcFiles, WithoutNetworkNobodyIsAsked) {
  const FakeTree host;
  host.File("/etc/resolv.conf", "nameserver 192.0.2.1\nsearch corp.example\n");
  for (const Network network : {Network::kDisabled, Network::kProxy}) {
    const auto files = Made(network, host);
    EXPECT_THAT(ContentOf(files, "/etc/nsswitch.conf"), HasSubstr("hosts: files\n"));
    EXPECT_THAT(ContentOf(files, "/etc/resolv.conf"), Not(HasSubstr("nameserver")));
    EXPECT_THAT(ContentOf(files, "/etc/resolv.conf"), Not(HasSubstr("corp")));
  }
}

TEST(MadeEtcFiles, WithTheHostsNetworkGoItsResolvers) {
  const FakeTree host;
  host.File("/etc/resolv.conf", "nameserver 192.0.2.1\n");
  const auto files = Made(Network::kAllow, host);
  EXPECT_THAT(ContentOf(files, "/etc/nsswitch.conf"), HasSubstr("hosts: files dns\n"));
  EXPECT_EQ(ContentOf(files, "/etc/resolv.conf"), "nameserver 192.0.2.1\n");
}

TEST(MadeEtcFiles, CutAnOverlongResolvConfAtALine) {
  const FakeTree host;
  std::string content;
  for (int i = 0; i < 1000; ++i) content += "nameserver 192.0.2.1\n";
  host.File("/etc/resolv.conf", content);
  const auto files = Made(Network::kAllow, host);
  const std::string copy = ContentOf(files, "/etc/resolv.conf");
  EXPECT_LE(copy.size(), 4096U);
  EXPECT_GT(copy.size(), 4000U);
  EXPECT_TRUE(copy.ends_with("192.0.2.1\n"));
  host.File("/etc/resolv.conf", std::string(10000, 'x'));
  EXPECT_EQ(ContentOf(Made(Network::kAllow, host), "/etc/resolv.conf"), "");
}

TEST(ShownEtcFiles, AreOnlyThePublicOnes) {
  const FakeTree host;
  host.File("/etc/ssl/certs/ca-certificates.crt");
  host.File("/etc/ld.so.cache");
  host.File("/etc/ld-musl-x86_64.path");
  host.File("/etc/java-17-openjdk/security/java.security");
  host.File("/etc/maven/m2.conf");
  host.File("/etc/php/8.2/cli/conf.d/x.ini");
  const char* secrets[] = {"/etc/ssl/private/key.pem",
                           "/etc/shadow",
                           "/etc/pip.conf",
                           "/etc/npmrc",
                           "/etc/gitconfig",
                           "/etc/maven/settings.xml",
                           "/etc/ssh/ssh_host_key",
                           "/etc/machine-id",
                           "/etc/passwd",
                           "/etc/hosts",
                           "/etc/resolv.conf",
                           "/etc/php/8.2/cli/php.ini"};
  for (const char* secret : secrets) host.File(secret);
  const auto files = ShownEtcFiles(host.root());
  EXPECT_TRUE(Has(files, "/etc/ssl/certs", EtcFile::Kind::kShownDirectory));
  EXPECT_TRUE(Has(files, "/etc/ld.so.cache", EtcFile::Kind::kShown));
  EXPECT_TRUE(Has(files, "/etc/ld-musl-x86_64.path", EtcFile::Kind::kShown));
  EXPECT_TRUE(Has(files, "/etc/java-17-openjdk", EtcFile::Kind::kShownDirectory));
  EXPECT_TRUE(Has(files, "/etc/maven/m2.conf", EtcFile::Kind::kShown));
  EXPECT_TRUE(Has(files, "/etc/php/8.2/cli/conf.d", EtcFile::Kind::kShownDirectory));
  EXPECT_EQ(files.size(), 6U);
  for (const EtcFile& file : files) {
    for (const std::string secret : secrets) EXPECT_FALSE(secret.starts_with(file.path)) << secret;
  }
}

TEST(ShownEtcFiles, KeepLinksIntoUsrAndNoOthers) {
  const FakeTree host;
  host.Link("/etc/localtime", "/usr/share/zoneinfo/Europe/Berlin");
  host.Link("/etc/os-release", "../usr/lib/os-release");
  auto files = ShownEtcFiles(host.root());
  EXPECT_EQ(ContentOf(files, "/etc/localtime"), "/usr/share/zoneinfo/Europe/Berlin");
  EXPECT_EQ(ContentOf(files, "/etc/os-release"), "../usr/lib/os-release");

  const FakeTree odd;
  odd.File("/etc/localtime", "TZif");
  odd.Link("/etc/os-release", "/usr/../home/user/.ssh/id_rsa");
  files = ShownEtcFiles(odd.root());
  EXPECT_TRUE(Has(files, "/etc/localtime", EtcFile::Kind::kShown));
  EXPECT_EQ(files.size(), 1U);
}

}  // namespace
}  // namespace palmshed::backends::native
